#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "tests/support/inode_flags.h"
#include "tests/support/tree_snapshot.h"

namespace sandglass::test {
namespace {

// What a failed assertion prints at most; a rollback that did nothing differs everywhere.
constexpr size_t kPrintedLines = 40;
constexpr size_t kPrintedValue = 96;

const char* TypeName(uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return "regular file";
    case S_IFDIR:
      return "directory";
    case S_IFLNK:
      return "symlink";
    case S_IFIFO:
      return "fifo";
    case S_IFSOCK:
      return "socket";
    case S_IFCHR:
      return "character device";
    case S_IFBLK:
      return "block device";
    default:
      return "unknown type";
  }
}

std::string Shown(std::string_view value) {
  if (value.size() <= kPrintedValue) return fmt::format("\"{}\"", Printable(value));
  return fmt::format("\"{}\"... ({} bytes)", Printable(value.substr(0, kPrintedValue)),
                     value.size());
}

std::string Shown(FileTime time) { return fmt::format("{}.{:09}", time.sec, time.nsec); }

// |a - b| in nanoseconds; the largest value when it does not fit.
int64_t Distance(FileTime a, FileTime b) {
  constexpr int64_t kSecond = 1'000'000'000;
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  int64_t seconds = 0;
  int64_t ns = 0;
  if (__builtin_sub_overflow(a.sec, b.sec, &seconds) ||
      __builtin_mul_overflow(seconds, kSecond, &ns))
    return kMax;
  if (__builtin_add_overflow(ns, int64_t{a.nsec} - int64_t{b.nsec}, &ns)) return kMax;
  return ns < 0 ? -ns : ns;
}

class Comparison {
 public:
  Comparison(const TreeSnapshot& before, const TreeSnapshot& after, const CompareOptions& options)
      : before_(before), after_(after), options_(options) {}

  std::vector<std::string> Run() {
    auto a = before_.entries().begin();
    auto b = after_.entries().begin();
    while (a != before_.entries().end() || b != after_.entries().end()) {
      const int order = Order(a, b);
      if (order < 0) Lone(*a++, "is gone, was a");
      if (order > 0) Lone(*b++, "was not there, is a");
      if (order == 0) Both(*a++, *b++);
    }
    return std::move(lines_);
  }

 private:
  using Iterator = std::vector<EntrySnapshot>::const_iterator;

  int Order(Iterator a, Iterator b) const {
    if (a == before_.entries().end()) return 1;
    if (b == after_.entries().end()) return -1;
    return a->path.compare(b->path);
  }

  void Lone(const EntrySnapshot& entry, std::string_view what) {
    if (!Excluded(entry.path)) Line(entry, fmt::format("{} {}", what, TypeName(entry.mode)));
  }

  void Both(const EntrySnapshot& a, const EntrySnapshot& b) {
    if (Excluded(a.path)) return;
    CompareType(a, b);
    Compare(a, "mode", a.mode & 07777U, b.mode & 07777U, "{:04o}");
    if (options_.check_owner == Check::kYes) {
      Compare(a, "uid", a.uid, b.uid, "{}");
      Compare(a, "gid", a.gid, b.gid, "{}");
    }
    if (Distance(a.mtime, b.mtime) > options_.mtime_tolerance_ns) {
      Line(a, fmt::format("mtime {} -> {}", Shown(a.mtime), Shown(b.mtime)));
    }
    CompareLinks(a, b);
    if (a.unreadable_errno != 0 || b.unreadable_errno != 0) return NoteUnreadable(a, b);
    if (a.content != b.content && SameType(a, b)) Line(a, "content differs");
    if (a.flags != b.flags)
      Line(a, fmt::format("flags {} -> {}", FlagNames(a.flags), FlagNames(b.flags)));
    if (options_.check_xattrs == Check::kYes) CompareXattrs(a, b);
  }

  static bool SameType(const EntrySnapshot& a, const EntrySnapshot& b) {
    return (a.mode & S_IFMT) == (b.mode & S_IFMT);
  }

  // The type and what only some types have.
  void CompareType(const EntrySnapshot& a, const EntrySnapshot& b) {
    if (!SameType(a, b)) {
      Line(a, fmt::format("type {} -> {}", TypeName(a.mode), TypeName(b.mode)));
      return;
    }
    Compare(a, "size", a.size, b.size, "{}");
    Compare(a, "device", a.device, b.device, "{:#x}");
    if (a.symlink_target != b.symlink_target) {
      Line(a, fmt::format("target {} -> {}", Shown(a.symlink_target), Shown(b.symlink_target)));
    }
  }

  template <class T>
  void Compare(const EntrySnapshot& entry, std::string_view what, T a, T b,
               std::string_view format) {
    if (a == b) return;
    Line(entry, fmt::format("{} {} -> {}", what, fmt::format(fmt::runtime(format), a),
                            fmt::format(fmt::runtime(format), b)));
  }

  void CompareXattrs(const EntrySnapshot& a, const EntrySnapshot& b) {
    auto x = a.xattrs.begin();
    auto y = b.xattrs.begin();
    while (x != a.xattrs.end() || y != b.xattrs.end()) {
      if (y == b.xattrs.end() || (x != a.xattrs.end() && x->first < y->first)) {
        Line(a, fmt::format("xattr {} {} -> none", Printable(x->first), Shown(x->second)));
        ++x;
      } else if (x == a.xattrs.end() || y->first < x->first) {
        Line(a, fmt::format("xattr {} none -> {}", Printable(y->first), Shown(y->second)));
        ++y;
      } else {
        if (x->second != y->second) {
          Line(a, fmt::format("xattr {} {} -> {}", Printable(x->first), Shown(x->second),
                              Shown(y->second)));
        }
        ++x, ++y;
      }
    }
  }

  void CompareLinks(const EntrySnapshot& a, const EntrySnapshot& b) {
    if (a.link_group < 0 && b.link_group < 0) return;
    const auto before = LinkedPaths(before_, a);
    const auto after = LinkedPaths(after_, b);
    if (before != after)
      Line(a, fmt::format("hard links {} -> {}", ShownPaths(before), ShownPaths(after)));
  }

  std::vector<std::string_view> LinkedPaths(const TreeSnapshot& tree,
                                            const EntrySnapshot& entry) const {
    std::vector<std::string_view> paths;
    if (entry.link_group < 0) return {entry.path};
    for (const std::string& path : tree.link_groups()[static_cast<size_t>(entry.link_group)]) {
      if (!Excluded(path)) paths.push_back(path);
    }
    return paths;
  }

  static std::string ShownPaths(const std::vector<std::string_view>& paths) {
    std::string shown;
    for (const std::string_view path : paths)
      shown += (shown.empty() ? "" : ", ") + Printable(path);
    return "{" + shown + "}";
  }

  void NoteUnreadable(const EntrySnapshot& a, const EntrySnapshot& b) {
    if (options_.check_unreadable == Check::kNo) return;
    const int error = a.unreadable_errno != 0 ? a.unreadable_errno : b.unreadable_errno;
    Line(a, fmt::format("cannot be compared in full: {}", ::strerror(error)));
  }

  bool Excluded(std::string_view path) const {
    return std::any_of(options_.exclude.begin(), options_.exclude.end(),
                       [path](const PathPredicate& excluded) { return excluded(path); });
  }

  void Line(const EntrySnapshot& entry, std::string_view what) {
    lines_.push_back(fmt::format("{}: {}", entry.path.empty() ? "." : Printable(entry.path), what));
  }

  const TreeSnapshot& before_;
  const TreeSnapshot& after_;
  const CompareOptions& options_;
  std::vector<std::string> lines_;
};

}  // namespace

PathPredicate Subtree(std::string top) {
  return [top = std::move(top)](std::string_view path) {
    return path.starts_with(top) &&
           (path.size() == top.size() || top.empty() || path[top.size()] == '/');
  };
}

std::vector<std::string> Diff(const TreeSnapshot& before, const TreeSnapshot& after,
                              const CompareOptions& options) {
  return Comparison(before, after, options).Run();
}

::testing::AssertionResult TreesEqual(const TreeSnapshot& before, const TreeSnapshot& after,
                                      const CompareOptions& options) {
  const std::vector<std::string> lines = Diff(before, after, options);
  if (lines.empty()) return ::testing::AssertionSuccess();
  auto failure = ::testing::AssertionFailure()
                 << "the trees differ in " << lines.size() << " places:";
  for (size_t i = 0; i < std::min(lines.size(), kPrintedLines); ++i) failure << "\n  " << lines[i];
  if (lines.size() > kPrintedLines) failure << "\n  ...";
  return failure;
}

std::string Printable(std::string_view bytes) {
  std::string shown;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '\\') {
      shown += c;
    } else {
      shown += fmt::format("\\x{:02x}", byte);
    }
  }
  return shown;
}

}  // namespace sandglass::test
