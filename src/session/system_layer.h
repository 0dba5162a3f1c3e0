// SystemLayer: the folder that takes what the commands of a root session change in the system (/usr, /etc, ...), where the world has
// overlays of it: world/local/system_folders.h. In use by one session at a time. Movable handle; one thread.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace sandglass::session {

class SystemLayer {
 public:
  // Stays; made if need be. kBusy: another session uses it. kUnsupported: nothing can be kept there.
  static Result<SystemLayer> Kept(const std::string& folder);
  // A new one, which is removed with the object: in memory, and if that cannot be, in this place. What processes left there that died
  // is removed first.
  static Result<SystemLayer> Fresh(const std::string& place);
  SystemLayer(SystemLayer&& other) noexcept = default;
  SystemLayer& operator=(SystemLayer&&) = delete;
  ~SystemLayer();

  const std::string& folder() const { return folder_; }
  // What the destructor would remove, ahead of it: no process is left that could use it.
  void RemoveUnlessKept();

 private:
  enum class End : uint8_t { kStays, kIsRemoved };
  SystemLayer(std::string folder, Fd lock, End end)
      : folder_(std::move(folder)), lock_(std::move(lock)), end_(end) {}
  static Result<SystemLayer> FreshIn(const std::string& place);
  static Result<SystemLayer> Take(const std::string& folder, Fd lock, End end);

  std::string folder_;
  Fd lock_;
  End end_;
};

}  // namespace sandglass::session
