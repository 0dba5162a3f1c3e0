// Encrypted folders (fscrypt): what a project's content is encrypted with must hold for the copies in its store too. Free functions,
// any thread.
#pragma once

#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "undo/place.h"

namespace sandglass::undo {

// A policy as the kernel gives it: key, ciphers and flags, and nothing that differs from folder to folder. Only compared.
using EncryptionPolicy = Bytes;

// nullopt: not encrypted, or on a file system that cannot be. `fd` must be open for reading; the key need not be there.
Result<std::optional<EncryptionPolicy>> EncryptionPolicyOf(int fd);

// May a store with the one policy keep content of a project with the other?
bool MayKeep(const std::optional<EncryptionPolicy>& project,
             const std::optional<EncryptionPolicy>& store);

// kUnsupported: kept content would leave the project's encryption.
Status CheckEncryption(const Place& place);
// The same for one object of the project, at `path`: a plain project may hold an encrypted folder.
Status CheckEncryptionOf(const Place& place, const OpenObject& object, std::string_view path);

}  // namespace sandglass::undo
