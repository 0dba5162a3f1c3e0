#include "session/files/ignore_layers.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/beneath.h"
#include "base/io.h"

namespace sandglass::session::files {
namespace {

constexpr size_t kMaxRulesBytes = 1 << 20;

undo::GitignoreRules ReadRules(int dir_fd, std::string_view file) {
  const auto fd = OpenBeneath(dir_fd, file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
  struct stat st{};
  if (!fd.ok() || ::fstat(fd->get(), &st) != 0 || !S_ISREG(st.st_mode)) return {};
  const auto bytes = ReadFully(fd->get(), kMaxRulesBytes);
  return bytes.ok() ? undo::GitignoreRules::Parse(AsText(*bytes)) : undo::GitignoreRules();
}

}  // namespace

IgnoreLayers IgnoreLayer::Add(IgnoreLayers above, int dir_fd, std::string_view path) {
  undo::GitignoreRules rules = ReadRules(dir_fd, ".gitignore");
  if (rules.empty()) return above;
  return std::make_shared<IgnoreLayer>(std::move(above), path.empty() ? 0 : path.size() + 1,
                                       std::move(rules));
}

IgnoreLayers IgnoreLayer::Above(int root_fd, std::string_view folder) {
  IgnoreLayers layers =
      std::make_shared<IgnoreLayer>(nullptr, 0, ReadRules(root_fd, ".git/info/exclude"));
  for (size_t end = 0; end < folder.size();) {
    const std::string_view path = folder.substr(0, end);
    if (const auto dir = OpenDirBeneath(root_fd, path); dir.ok())
      layers = Add(std::move(layers), dir->get(), path);
    end = std::min(folder.find('/', end + 1), folder.size());
  }
  return layers;
}

bool IsIgnored(const IgnoreLayers& layers, std::string_view path, undo::PathKind kind) {
  for (const IgnoreLayer* layer = layers.get(); layer != nullptr; layer = layer->above_.get()) {
    const undo::Verdict verdict = layer->rules_.Match(path.substr(layer->base_size_), kind);
    if (verdict != undo::Verdict::kNone) return verdict == undo::Verdict::kIgnored;
  }
  return false;
}

}  // namespace sandglass::session::files
