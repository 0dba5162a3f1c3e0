// SharedOutput: a descriptor that others write to as well, such as a standard stream, written to without ever waiting.
//
// Its flags are shared too, so O_NONBLOCK is not ours to set; and what poll() calls writable takes no more than PIPE_BUF for
// certain. A pipe is therefore opened once more, with flags of its own; sockets and files have other ways. Thread-compatible.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace sandglass {

class SharedOutput {
 public:
  // `fd` must stay open.
  explicit SharedOutput(int fd);

  // For poll().
  int fd() const { return own_ ? own_.get() : shared_; }
  // How much was taken; 0: nothing for now. kCancelled: nobody reads any more (SIGPIPE must be blocked or ignored).
  Result<size_t> Write(std::string_view bytes) const;

 private:
  enum class Kind : uint8_t {
    kUnknown,  // a terminal, say: in small pieces, after a look
    kOwnPipe,
    kSocket,
    kFile,  // or /dev/null: waits for no reader
  };

  int shared_;
  Fd own_;
  Kind kind_ = Kind::kUnknown;
};

}  // namespace sandglass
