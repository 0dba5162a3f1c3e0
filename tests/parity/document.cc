#include "tests/parity/document.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <string_view>

#include "tests/parity/case.h"

namespace sandglass::parity {
namespace {

constexpr char kLinkCount[] =
    "undo keeps what is removed by a hard link of its own, and that counts";
constexpr char kTouched[] =
    "the kernel refuses it only after undo has linked what would be replaced, which moves its "
    "ctime";
constexpr char kOtherMount[] = "the project is a mount of its own, so this is another one";
constexpr char kFrozen[] =
    "a file that undo keeps cannot be changed through an old descriptor: ESTALE; one that was "
    "made in the same step can";
constexpr char kNoName[] =
    "what is open for reading only and has no name cannot be found on the writable side: EROFS, "
    "and the file system is told as read-only";
constexpr char kWhiteout[] = "undo does not record whiteouts: EINVAL";
constexpr char kResolve[] =
    "with RESOLVE_* flags nothing is made through a dangling symlink (ENOENT), and an absolute "
    "symlink is not followed (EROFS)";
constexpr char kOwnIdOnly[] =
    "an ordinary user's world knows no id but his own, so the kernel says EINVAL before EPERM";
constexpr auto kSometimes = KnownDifference::Shows::kSometimes;

// clang-format off
constexpr KnownDifference kKnown[] = {
    {"unlink", "a file", kLinkCount},
    {"unlink", "a file with two names", kLinkCount},
    {"unlink", "an absolute path", kLinkCount},
    {"unlink", "somebody's file (other)", kLinkCount},
    {"unlink", "links of an open file", kLinkCount},
    {"unlinkat", "a file", kLinkCount},
    {"unlinkat", "a file with two names", kLinkCount},
    {"unlinkat", "an absolute path", kLinkCount},
    {"unlinkat", "somebody's file (other)", kLinkCount},
    {"rename", "a file to a dangling symlink with a slash", kTouched, kSometimes},
    {"rename", "a folder to *", kTouched},
    {"rename", "empty to file", kTouched},
    {"rename", "dir to dirlink", kTouched},
    {"renameat", "to a dangling symlink with a slash", kTouched},
    {"rename", "a file to the root folder", kOtherMount, kSometimes},
    {"renameat", "to the root folder", kOtherMount, kSometimes},
    {"renameat2", "RENAME_NOREPLACE to the root folder", kOtherMount, kSometimes},
    {"rename", "to another file system", kOtherMount, kSometimes},
    {"rename", "from another file system", kOtherMount, kSometimes},
    {"linkat", "to another file system", kOtherMount, kSometimes},
    {"linkat", "from another file system", kOtherMount, kSometimes},
    {"setuid", "*", kOwnIdOnly, kSometimes},
    {"setgid", "*", kOwnIdOnly, kSometimes},
    {"setreuid", "*", kOwnIdOnly, kSometimes},
    {"setregid", "*", kOwnIdOnly, kSometimes},
    {"setresuid", "*", kOwnIdOnly, kSometimes},
    {"setresgid", "*", kOwnIdOnly, kSometimes},
    {"renameat2", "RENAME_WHITEOUT, *", kWhiteout},
    {"*", "unlinked and open for both", kFrozen},
    {"*", "unlinked and open for reading", kNoName},
    {"utimensat", "no path, unlinked and open for both", kFrozen},
    {"utimensat", "no path, unlinked and open for reading", kNoName},
    {"open", "O_NOFOLLOW is told as a flag", "the file is opened by its descriptor, where that flag has no meaning"},
    {"open", "more descriptors than allowed", "the descriptor is handed over last, so the file is there although the call fails with EMFILE"},
    {"openat2", "RESOLVE_NO_XDEV, to make ../dangling", kResolve},
    {"openat2", "RESOLVE_NO_MAGICLINKS, to make ../dangling", kResolve},
    {"openat2", "RESOLVE_NO_MAGICLINKS, abslink", kResolve},
    {"openat2", "RESOLVE_NO_XDEV, abslink", kResolve, kSometimes},
    {"openat2", "RESOLVE_NO_XDEV, ABS/file", kOtherMount, kSometimes},
    {"bind", "the name that it tells, dir/new", "the bridge binds in the folder, so getsockname() tells the last name only"},
    {"socket AF_UNIX", "datagrams", "a datagram names its receiver in memory, where it can change: EACCES"},
    {"socketpair AF_UNIX", "datagrams", "a datagram names its receiver in memory, where it can change: EACCES"},
};
// clang-format on

constexpr char kIntroduction[] = R"(# Parity with the kernel

Made from the tables in `tests/parity` by `parity_program document`; a test compares the two.

`parity_test` performs each case natively and in a world, as root and as an ordinary user, and compares result, errno, descriptor
and every change of the tree: names, modes, owners, links, sizes, contents, attributes, which time stamps moved. It then undoes the
world's step and looks whether the tree is as it was. Root has the capabilities of root in a world in both. A call of
[supervised_calls.md](supervised_calls.md) that is performed or noted and has no case here fails the suite.

Not compared: EROFS, which natively needs a read-only mount; and signals. A supervised call that waits for the supervisor can be
interrupted by a handler that was installed without SA_RESTART and then fails with EINTR, unperformed, where the kernel would have
been too quick.

## Cases per system call and situation

)";

std::string Matrix(const Cases& cases) {
  std::map<std::string, std::array<int, kKinds>> counts;
  std::array<int, kKinds> totals{};
  for (const Case& one : cases) {
    ++counts[one.call][static_cast<size_t>(one.kind)];
    ++totals[static_cast<size_t>(one.kind)];
  }
  std::string text = "| Call |";
  for (size_t kind = 0; kind < kKinds; ++kind)
    text += fmt::format(" {} |", KindName(static_cast<Kind>(kind)));
  text += "\n|---|";
  for (size_t kind = 0; kind < kKinds; ++kind) text += "---|";
  text += "\n";
  const auto row = [&](const std::string& name, const std::array<int, kKinds>& numbers) {
    text += fmt::format("| {} |", name);
    for (const int number : numbers) text += number == 0 ? " |" : fmt::format(" {} |", number);
    text += "\n";
  };
  for (const auto& [call, numbers] : counts) row(call, numbers);
  row(fmt::format("all {}", cases.size()), totals);
  return text;
}

}  // namespace

std::span<const KnownDifference> KnownDifferences() { return kKnown; }

const KnownDifference* FindKnownDifference(const std::string& name) {
  for (const KnownDifference& known : kKnown) {
    std::string_view what = known.what;
    const bool several = what.ends_with('*');
    if (several) what.remove_suffix(1);
    const size_t colon = name.find(": ");
    const std::string_view call(name.data(), colon),
        rest = std::string_view(name).substr(colon + 2);
    const bool of_call = known.call == std::string_view("*") || call == known.call;
    if (of_call && (several ? rest.starts_with(what) : rest == what)) return &known;
  }
  return nullptr;
}

std::string Document() {
  std::string text = kIntroduction + Matrix(AllCases());
  text += "\n## Known differences\n\n| Call | Case | Reason |\n|---|---|---|\n";
  for (const KnownDifference& known : kKnown)
    text += fmt::format("| {} | {} | {} |\n", known.call, known.what, known.reason);
  return text;
}

}  // namespace sandglass::parity
