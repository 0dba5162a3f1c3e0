#include "undo/encryption.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fscrypt.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace sandglass::undo {

Result<std::optional<EncryptionPolicy>> EncryptionPolicyOf(int fd) {
  fscrypt_get_policy_ex_arg arg{};
  arg.policy_size = sizeof(arg.policy);
  if (::ioctl(fd, FS_IOC_GET_ENCRYPTION_POLICY_EX, &arg) == 0) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&arg.policy);
    return std::optional(
        EncryptionPolicy(bytes, bytes + std::min<size_t>(arg.policy_size, sizeof(arg.policy))));
  }
  // Not encrypted; a file system that could but does not here; one that does not know the question.
  if (errno == ENODATA || errno == EOPNOTSUPP || errno == ENOTTY)
    return std::optional<EncryptionPolicy>();
  return Error::FromErrno(errno, "read the encryption policy");
}

bool MayKeep(const std::optional<EncryptionPolicy>& project,
             const std::optional<EncryptionPolicy>& store) {
  return !project || project == store;
}

Status CheckEncryption(const Place& place) {
  auto project = EncryptionPolicyOf(place.root.get());
  if (!project.ok()) return project.error().WithContext(place.project_path);
  auto store = EncryptionPolicyOf(place.store.get());
  if (!store.ok()) return store.error().WithContext(place.store_path);
  if (MayKeep(*project, *store)) return Ok();
  return Error(
      Code::kUnsupported,
      fmt::format("the project {} is encrypted and the undo store {} is {}, so kept "
                  "contents would leave the encrypted area; name a store inside the same "
                  "encrypted folder tree (and outside the project); if the project is the top of "
                  "that tree, move it into a folder there",
                  place.project_path, place.store_path, *store ? "encrypted differently" : "not"));
}

Status CheckEncryptionOf(const Place& place, const OpenObject& object, std::string_view path) {
  // In an encrypted folder everything has its policy, and the store has that of the project's.
  if (!object.stat.encrypted || place.root_encrypted) return Ok();
  const Fd fd(::open(ProcPath(object.fd.get()).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const auto policy = EncryptionPolicyOf(fd.get());
  const auto store = EncryptionPolicyOf(place.store.get());
  if (policy.ok() && store.ok() && MayKeep(*policy, *store)) return Ok();
  return Error(Code::kUnsupported,
               fmt::format("{} is encrypted and the undo store is not encrypted like it, so what "
                           "undo keeps of it would leave the encrypted area; open the encrypted "
                           "folder as a project of its own",
                           path),
               EROFS);
}

}  // namespace sandglass::undo
