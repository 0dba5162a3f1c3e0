#include "session/file_write.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <string_view>

#include "base/rel_path.h"
#include "session/files/replace_file.h"

namespace sandglass::session {
namespace {

// What a descriptor of the session's holds, without a copy. It comes from the session, which does not shorten it meanwhile.
class MappedContent {
 public:
  MappedContent() = default;
  MappedContent(const MappedContent&) = delete;
  MappedContent& operator=(const MappedContent&) = delete;
  ~MappedContent() {
    if (bytes_ != nullptr) ::munmap(bytes_, size_);
  }

  Status Map(const Fd& from) {
    struct stat st{};
    if (::fstat(from.get(), &st) != 0) return Error::FromErrno(errno, "look at the content");
    if (st.st_size == 0) return Ok();  // the kernel maps nothing of no size
    size_ = static_cast<size_t>(st.st_size);
    void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, from.get(), 0);
    if (mapped == MAP_FAILED) return Error::FromErrno(errno, "map the content");
    bytes_ = mapped;
    return Ok();
  }
  std::string_view text() const {
    if (bytes_ == nullptr) return {};
    return {static_cast<const char*>(bytes_), size_};
  }

 private:
  void* bytes_ = nullptr;
  size_t size_ = 0;
};

Status Write(undo::Interceptor& interceptor, const WriteRequest& request,
             std::string_view content) {
  const Fd root(::open(request.project.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return Error::FromErrno(errno, "open the project");
  const files::Parents parents =
      request.folders == FoldersAround::kMade ? files::Parents::kMade : files::Parents::kMustExist;
  TRY(files::WriteWholeFile(root.get(), interceptor,
                            {.path = request.path,
                             .content = content,
                             .parents = parents,
                             .expected = request.expected}));
  return Ok();
}

}  // namespace

Status WriteFileAsStep(undo::UndoLog& log, const WriteRequest& request, const Fd& content) {
  if (!content) return Error(Code::kInvalid, "a file without its content");
  TRY_ASSIGN(const std::string path, NormalizeRelPath(request.path));
  if (path.empty() || path != request.path)
    return Error(Code::kInvalid, fmt::format("{} names no file", request.path));
  MappedContent mapped;
  TRY(mapped.Map(content));
  auto opened =
      log.OpenStep({.kind = undo::StepKind::kApi, .label = request.label, .id = request.step});
  if (!opened.ok()) return opened.error();
  Status done = Write(log.interceptor(), request, mapped.text());
  if (done.ok()) {
    auto closed = log.CloseStep();
    if (closed.ok()) return Ok();
    done = closed.error();
  }
  const auto taken_back = log.AbortStep();
  return taken_back.ok() ? done : Status(taken_back.error().WithContext(done.error().message()));
}

}  // namespace sandglass::session
