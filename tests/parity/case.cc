#include "tests/parity/case.h"

#include <array>

namespace sandglass::parity {

std::string_view KindName(Kind kind) {
  constexpr std::array<std::string_view, kKinds> kNames = {
      "plain",  "missing", "exists",   "not a folder", "folder",      "symlink",    "dangling",
      "slash",  "dots",    "too long", "bad argument", "dirfd",       "descriptor", "flags",
      "rights", "set-gid", "umask",    "other object", "other place", "afterwards"};
  return kNames[static_cast<size_t>(kind)];
}

Cases AllCases() {
  Cases cases;
  AddNameCases(cases);
  AddLinkCases(cases);
  AddOpenCases(cases);
  AddContentCases(cases);
  AddMetadataCases(cases);
  AddXattrCases(cases);
  AddQuestionCases(cases);
  AddSocketCases(cases);
  AddCredentialCases(cases);
  return cases;
}

}  // namespace sandglass::parity
