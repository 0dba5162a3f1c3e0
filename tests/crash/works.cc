#include "tests/crash/works.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <string>

#include "base/io.h"

namespace sandglass::crash {
namespace {

using undo::NodeType;
using undo::RenameMode;
using undo::WriteVisibility;

constexpr auto kUnseen = WriteVisibility::kUnseen;
constexpr auto kAnnounced = WriteVisibility::kAnnounced;

Status CreateWork(ProjectOps& ops, const Means&) {
  TRY(ops.WriteNew("new.txt", "hello"));
  TRY(ops.Create("src/empty", 0600));
  return ops.WriteNew("data/new.bin", Pattern(kLargeBytes, 71));
}

Status NewFoldersWork(ProjectOps& ops, const Means&) {
  TRY(ops.Mkdir("fresh"));
  TRY(ops.Mkdir("fresh/inner", 0700));
  TRY(ops.WriteNew("fresh/inner/file", "deep"));
  TRY(ops.Mkdir("src/deep/more"));
  return ops.WriteNew("src/deep/more/file", "deeper");
}

Status OverwriteSmallWork(ProjectOps& ops, const Means&) {
  TRY(ops.Overwrite("README.md", "shorter"));
  TRY(ops.Overwrite("src/main.cc", Pattern(9000, 72)));
  TRY(ops.Overwrite("misc/nothing", "something"));
  return ops.Overwrite("README.md", "changed twice");
}

// In place and unseen: the whole content is kept first.
Status OverwriteLargeWork(ProjectOps& ops, const Means&) {
  TRY(ops.WriteAt("data/large.bin", 1000, Pattern(5000, 73), kUnseen));
  TRY(ops.WriteAt("data/larger.bin", kLarger - 10, Pattern(100, 74), kUnseen));
  return ops.MmapWrite("tree/two/sub/big", 70'000, Pattern(3000, 75));
}

Status TruncateOpenLargeWork(ProjectOps& ops, const Means&) {
  TRY(ops.Overwrite("data/large.bin", "now short"));
  TRY(ops.Overwrite("data/larger.bin", Pattern(kLargeBytes, 76)));
  return ops.Append("data/large.bin", " and a tail", kUnseen);
}

Status RangeWriteWork(ProjectOps& ops, const Means&) {
  TRY(ops.WriteAt("data/large.bin", 100'000, Pattern(5000, 77), kAnnounced));
  TRY(ops.WriteAt("data/large.bin", 98'000, Pattern(4000, 78), kAnnounced));
  TRY(ops.Append("data/large.bin", Pattern(2000, 79), kAnnounced));
  TRY(ops.WriteAt("data/table.csv", 500, "range in a small file", kAnnounced));
  return ops.WriteAt("data/larger.bin", 0, Pattern(70'000, 80), kAnnounced);
}

Status TruncateWork(ProjectOps& ops, const Means&) {
  TRY(ops.TruncateTo("data/large.bin", 1000));
  TRY(ops.TruncateTo("data/larger.bin", kLarger + 5000));
  TRY(ops.TruncateTo("README.md", 10'000));
  TRY(ops.TruncateTo("src/main.cc", 0));
  return ops.TruncateTo("data/large.bin", 200'000);
}

Status ContentCallsWork(ProjectOps& ops, const Means&) {
  TRY(ops.PunchHole("data/large.bin", 65'536, 131'072));
  TRY(ops.Fallocate("data/table.csv", 15'000, 30'000));
  TRY(ops.CopyRange("data/larger.bin", 4096, "data/large.bin", 200'000, 60'000));
  return ops.MmapWrite("src/main.cc", 10, "through a mapping");
}

Status UnlinkWork(ProjectOps& ops, const Means&) {
  TRY(ops.Unlink("README.md"));
  TRY(ops.Unlink("data/large.bin"));
  TRY(ops.Unlink("links/readme"));
  TRY(ops.Unlink("misc/secret"));
  TRY(ops.Unlink("misc/pipe"));
  return ops.Unlink("misc/tool");
}

Status RemoveTreeWork(ProjectOps& ops, const Means&) {
  TRY(ops.RemoveTree("tree"));
  return ops.RemoveTree("src/deep");
}

Status RenameWork(ProjectOps& ops, const Means&) {
  TRY(ops.Rename("README.md", "READ.ME"));
  TRY(ops.Rename("src/util.cc", "tree/one/util.cc"));
  TRY(ops.Rename("data/large.bin", "data/moved.bin", RenameMode::kNoReplace));
  TRY(ops.Rename("tree/two", "src/deep/two"));
  return ops.Rename("READ.ME", "README.md");
}

Status RenameOverWork(ProjectOps& ops, const Means&) {
  TRY(ops.Rename("README.md", "src/main.cc"));
  TRY(ops.Rename("data/table.csv", "data/large.bin"));
  TRY(ops.Rename("tree/three", "misc/empty"));
  TRY(ops.Rename("tree/dangling", "links/readme"));
  TRY(ops.Rename("links/one", "links/two"));  // two names of one object: nothing happens
  return ops.Rename("src/util.cc", "links/two");
}

Status ExchangeWork(ProjectOps& ops, const Means&) {
  TRY(ops.Rename("README.md", "src/main.cc", RenameMode::kExchange));
  TRY(ops.Rename("data/large.bin", "tree/one", RenameMode::kExchange));
  TRY(ops.Rename("links/readme", "misc/pipe", RenameMode::kExchange));
  return ops.WriteNew("data/large.bin/inside", "a folder by now");
}

Status RenameFolderWork(ProjectOps& ops, const Means&) {
  TRY(ops.Rename("src", "source"));
  TRY(ops.Overwrite("source/main.cc", "changed under the new name"));
  TRY(ops.WriteNew("source/deep/new", "new"));
  TRY(ops.Unlink("source/util.cc"));
  TRY(ops.Rename("source/deep", "deep"));
  TRY(ops.Overwrite("deep/a/leaf.txt", "changed twice removed"));
  TRY(ops.Mkdir("src"));
  return ops.WriteNew("src/main.cc", "another one under the old name");
}

Status HardLinksWork(ProjectOps& ops, const Means&) {
  TRY(ops.Link("links/one", "links/four"));
  TRY(ops.WriteAt("links/two", 10, "through the second name", kUnseen));
  TRY(ops.Unlink("links/one"));
  TRY(ops.Overwrite("src/third", "all names see this"));
  TRY(ops.Link("data/large.bin", "links/large"));
  TRY(ops.Overwrite("links/large", "through the new name"));
  TRY(ops.Unlink("data/large.bin"));
  return ops.Unlink("links/two");
}

Status SpecialNodesWork(ProjectOps& ops, const Means&) {
  TRY(ops.Symlink("README.md", "shortcut"));
  TRY(ops.Mknod("misc/other", NodeType::kFifo, 0600));
  TRY(ops.Unlink("links/readme"));
  TRY(ops.Symlink("elsewhere", "links/readme"));
  TRY(ops.Mknod("misc/socket", NodeType::kSocket, 0600));
  TRY(ops.Rename("misc/other", "misc/pipe"));
  return ops.Mknod("misc/plain", NodeType::kFile, 0640);
}

Status XattrWork(ProjectOps& ops, const Means& means) {
  if (!means.xattrs) return Ok();
  TRY(ops.SetXattr("README.md", "user.note", "other"));
  TRY(ops.SetXattr("src/main.cc", "user.first", std::string(200, 'x')));
  TRY(ops.RemoveXattr("data/large.bin", "user.note"));
  TRY(ops.RemoveXattr("src", "user.note"));
  return ops.SetXattr("", "user.root", "on the root itself");
}

Status MetadataWork(ProjectOps& ops, const Means& means) {
  TRY(ops.Chmod("README.md", 0600));
  TRY(ops.Chmod("src", 0700));
  TRY(ops.Chmod("misc/nothing", 06711));
  TRY(ops.Chown("misc/tool", means.other_uid, means.other_gid));
  TRY(ops.Chown("links/readme", means.other_uid, means.other_gid));
  TRY(ops.SetMtime("README.md", 1'234'567'890'987'654'321));
  TRY(ops.SetMtime("tree", 1));
  TRY(ops.SetMtime("links/readme", 2'000'000'000'000'000'001));
  if (means.flags) TRY(ops.SetFlags("data/table.csv", FS_NODUMP_FL));
  TRY(ops.Chmod("", 0711));
  return XattrWork(ops, means);
}

Status RecreateWork(ProjectOps& ops, const Means&) {
  TRY(ops.Unlink("README.md"));
  TRY(ops.WriteNew("README.md", "second"));
  TRY(ops.Unlink("README.md"));
  TRY(ops.Mkdir("README.md"));
  TRY(ops.Rmdir("README.md"));
  TRY(ops.Symlink("third", "README.md"));
  TRY(ops.Unlink("README.md"));
  return ops.WriteNew("README.md", "fourth", 0600);
}

Status Write(int fd, std::string_view text) {
  return WriteFully(fd, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

Status UnlinkedWhileOpenWork(ProjectOps& ops, const Means&) {
  TRY_ASSIGN(const Fd kept, ops.OpenFile("data/table.csv", O_WRONLY, kUnseen));
  TRY(Write(kept.get(), "first bytes"));
  TRY(ops.Unlink("data/table.csv"));
  TRY(Write(kept.get(), "written without a name"));
  TRY_ASSIGN(const Fd linked, ops.OpenFile("links/one", O_WRONLY | O_APPEND, kUnseen));
  TRY(ops.Unlink("links/one"));
  TRY(Write(linked.get(), "one name less"));
  TRY(ops.LinkOpenFile(linked.get(), "data/relinked"));
  return Write(linked.get(), "one name more");
}

Status NothingWork(ProjectOps&, const Means&) { return Ok(); }

}  // namespace

Status MixedWork(ProjectOps& ops, const Means& means) {
  TRY(ops.WriteNew("notes.txt", "a new file"));
  TRY(ops.Mkdir("build"));
  TRY(ops.WriteNew("build/out", Pattern(5000, 81), 0755));
  TRY(ops.Overwrite("README.md", "rewritten"));
  TRY(ops.WriteAt("data/large.bin", 50'000, Pattern(1000, 82), kAnnounced));
  TRY(ops.Unlink("src/util.cc"));
  TRY(ops.Rename("tree/one", "build/one"));
  TRY(ops.Rename("notes.txt", "src/main.cc"));
  TRY(ops.Link("data/table.csv", "build/table"));
  TRY(ops.Symlink("../data", "build/data"));
  TRY(ops.Chmod("misc/tool", 0700));
  if (means.xattrs) TRY(ops.SetXattr("README.md", "user.note", "mixed"));
  TRY(ops.RemoveTree("tree/two"));
  return ops.Overwrite("build/table", "both names");
}

Status SecondWork(ProjectOps& ops, const Means&) {
  TRY(ops.WriteNew("second.txt", "second"));
  TRY(ops.Overwrite("README.md", "rewritten again"));
  TRY(ops.Append("data/large.bin", "more", kAnnounced));
  return ops.Unlink("misc/nothing");
}

Status ThirdWork(ProjectOps& ops, const Means&) {
  TRY(ops.Rename("README.md", "README.txt"));
  TRY(ops.WriteNew("README.md", "third"));
  TRY(ops.Chmod("misc/shared", 0600));
  return ops.TruncateTo("data/larger.bin", 5000);
}

Status LargeWork(ProjectOps& ops, const Means&) {
  TRY(ops.Overwrite("data/large.bin", Pattern(kLarger, 83)));
  TRY(ops.WriteAt("data/larger.bin", 200'000, Pattern(100'000, 84), kUnseen));
  return ops.Unlink("tree/two/sub/big");
}

Status PackedWork(ProjectOps& ops, const Means&) {
  TRY(ops.Overwrite("data/table.csv", Pattern(30'000, 85)));
  TRY(ops.Overwrite("src/main.cc", "packed"));
  TRY(ops.Overwrite("README.md", "packed too"));
  return ops.WriteAt("data/large.bin", 0, Pattern(1000, 86), kUnseen);
}

std::span<const WorkRow> AllWorks() {
  static constexpr WorkRow kWorks[] = {
      {"empty", "a step without changes", NothingWork},
      {"create", "new files, small, empty and large", CreateWork},
      {"new_folders", "new files in new folders", NewFoldersWork},
      {"overwrite_small", "small files rewritten", OverwriteSmallWork},
      {"overwrite_large", "large files changed in place, offsets unseen", OverwriteLargeWork},
      {"truncate_open_large", "large files opened with truncation", TruncateOpenLargeWork},
      {"range_write", "announced ranges of large files", RangeWriteWork},
      {"truncate", "truncation down and up", TruncateWork},
      {"content_calls", "hole, allocation, copied range, mapping", ContentCallsWork},
      {"unlink", "files of every kind removed", UnlinkWork},
      {"remove_tree", "whole folders removed", RemoveTreeWork},
      {"rename", "files and folders renamed", RenameWork},
      {"rename_over", "renames onto existing names", RenameOverWork},
      {"exchange", "names exchanged", ExchangeWork},
      {"rename_folder", "a folder renamed, then changed inside", RenameFolderWork},
      {"hard_links", "linked, written through, unlinked", HardLinksWork},
      {"special_nodes", "symlinks, FIFOs, sockets", SpecialNodesWork},
      {"metadata", "mode, owner, times, xattrs, flags", MetadataWork},
      {"recreate", "one name removed and made anew many times", RecreateWork},
      {"unlinked_open", "written and linked again while unlinked", UnlinkedWhileOpenWork},
      {"mixed", "a bit of everything", MixedWork},
      {"large", "only large contents", LargeWork},
  };
  return kWorks;
}

}  // namespace sandglass::crash
