#include "session/files/read_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "session/files/list_directory.h"
#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"

namespace sandglass::session::files {
namespace {

class FilesTest : public testing::Test {
 protected:
  FileContent Read(std::string_view path, std::variant<ByteRange, LineRange> range,
                   size_t max_bytes = kDefaultReadBytes) {
    auto content = ReadFile(root_.get(), {path, range, max_bytes});
    EXPECT_TRUE(content.ok()) << content.error().ToString();
    return content.ok() ? std::move(*content) : FileContent();
  }
  Code Failure(std::string_view path) {
    const auto content = ReadFile(root_.get(), {path});
    EXPECT_FALSE(content.ok()) << path;
    return content.ok() ? Code::kVersion : content.error().code();
  }

  test::TempWorkspace workspace_;
  Fd root_{::open(workspace_.project().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
};
using ReadFileTest = FilesTest;
using ListDirectoryTest = FilesTest;

TEST_F(ReadFileTest, ReadsAFileAndSaysThatItEnds) {
  workspace_.WriteFile("a", "hello");
  const FileContent content = Read("a", ByteRange());
  EXPECT_EQ(content.bytes, "hello");
  EXPECT_TRUE(content.at_end);
  EXPECT_EQ(content.version.size, 5u);
  EXPECT_EQ(content.kind, ContentKind::kText);
}

TEST_F(ReadFileTest, PagesOfBytesJoinToTheFile) {
  workspace_.WriteFile("a", "0123456789");
  std::string joined;
  for (uint64_t offset = 0;;) {
    const FileContent page = Read("a", ByteRange{offset, 100}, 3);
    joined += page.bytes;
    offset = page.next_offset;
    if (page.at_end) break;
  }
  EXPECT_EQ(joined, "0123456789");
  EXPECT_EQ(Read("a", ByteRange{2, 3}).bytes, "234");
  EXPECT_FALSE(Read("a", ByteRange{2, 3}).at_end);
  EXPECT_TRUE(Read("a", ByteRange{7, 3}).at_end);
  EXPECT_EQ(Read("a", ByteRange{50, 3}).bytes, "");
  EXPECT_TRUE(Read("a", ByteRange{50, 3}).at_end);
}

TEST_F(ReadFileTest, PagesOfLinesJoinToTheFile) {
  std::string file;
  for (int i = 1; i <= 100; ++i) file += "line " + std::to_string(i) + "\n";
  file += "no end";
  workspace_.WriteFile("a", file);
  std::string joined;
  for (uint64_t line = 1;;) {
    const FileContent page = Read("a", LineRange{line, 7});
    EXPECT_EQ(page.first_line, line);
    EXPECT_EQ(page.offset, joined.size());
    joined += page.bytes;
    line = page.next_line;
    if (page.at_end) break;
  }
  EXPECT_EQ(joined, file);
  EXPECT_EQ(Read("a", LineRange{3, 1}).bytes, "line 3\n");
  EXPECT_EQ(Read("a", LineRange{500, 1}).bytes, "");
  EXPECT_TRUE(Read("a", LineRange{500, 1}).at_end);
}

TEST_F(ReadFileTest, ALineThatDoesNotFitWaitsForTheNextPageOrIsCut) {
  workspace_.WriteFile("a", "ab\ncdef\n");
  const FileContent page = Read("a", LineRange{1, {}}, 5);
  EXPECT_EQ(page.bytes, "ab\n");
  EXPECT_EQ(page.next_line, 2u);
  EXPECT_FALSE(page.at_end);
  const FileContent cut = Read("a", LineRange{2, {}}, 3);
  EXPECT_EQ(cut.bytes, "cde");
  EXPECT_EQ(cut.next_line, 2u);
  EXPECT_EQ(cut.next_offset, 6u);
}

TEST_F(ReadFileTest, LinesThatCrossTheChunksOfReadingAreWhole) {
  const std::string line(200'000, 'x');
  workspace_.WriteFile("a", line + "\n" + line + "\nend\n");
  EXPECT_EQ(Read("a", LineRange{2, 1}).bytes, line + "\n");
  EXPECT_EQ(Read("a", LineRange{3, 5}).bytes, "end\n");
}

TEST_F(ReadFileTest, TellsBinaryFiles) {
  workspace_.WriteFile("a", std::string("ELF\0\1", 5));
  EXPECT_EQ(Read("a", ByteRange()).kind, ContentKind::kBinary);
  workspace_.WriteFile("b", std::string("\xFF\xFE"
                                        "a\0",
                                        4));
  EXPECT_EQ(Read("b", ByteRange()).kind, ContentKind::kText);
}

TEST_F(ReadFileTest, StaysBeneathTheRoot) {
  workspace_.WriteFile("d/a", "in");
  test::MustCall(::symlink("/etc/passwd", workspace_.Path("absolute").c_str()), "symlink");
  test::MustCall(::symlink("../../x", workspace_.Path("d/out").c_str()), "symlink");
  test::MustCall(::symlink("d", workspace_.Path("link").c_str()), "symlink");
  EXPECT_EQ(Failure("absolute"), Code::kOutsideRoot);
  EXPECT_EQ(Failure("d/out"), Code::kOutsideRoot);
  EXPECT_EQ(Failure("../x"), Code::kOutsideRoot);
  EXPECT_EQ(Failure("/etc/passwd"), Code::kOutsideRoot);
  EXPECT_EQ(Read("link/a", ByteRange()).bytes, "in");
}

TEST_F(ReadFileTest, RefusesWhatIsNoRegularFileWithoutWaiting) {
  workspace_.MakeDir("d");
  test::MustCall(::mkfifo(workspace_.Path("fifo").c_str(), 0600), "mkfifo");
  EXPECT_EQ(Failure("d"), Code::kInvalid);
  EXPECT_EQ(Failure("fifo"), Code::kInvalid);
  EXPECT_EQ(Failure("none"), Code::kNotFound);
  EXPECT_EQ(Failure(std::string_view("a\0b", 3)), Code::kInvalid);
}

TEST_F(ReadFileTest, AWholeFileIsNeverCut) {
  workspace_.WriteFile("a", "12345");
  EXPECT_EQ(ReadWholeFile(root_.get(), "a", 5)->bytes, "12345");
  EXPECT_EQ(ReadWholeFile(root_.get(), "a", 4).error().code(), Code::kLimit);
  test::MustCall(::symlink("a", workspace_.Path("link").c_str()), "symlink");
  EXPECT_EQ(ReadWholeFile(root_.get(), "link", 5).error().code(), Code::kOutsideRoot);
}

TEST_F(ListDirectoryTest, ListsNamesInOrderWithWhatTheyAre) {
  workspace_.WriteFile("b.txt", "123");
  workspace_.MakeDir("a");
  test::MustCall(::symlink("b.txt", workspace_.Path("c").c_str()), "symlink");
  const auto listing = ListDirectory(root_.get(), {""});
  ASSERT_TRUE(listing.ok());
  ASSERT_EQ(listing->entries.size(), 3u);
  EXPECT_EQ(listing->entries[0].name, "a");
  EXPECT_EQ(listing->entries[0].type, undo::NodeType::kDirectory);
  EXPECT_EQ(listing->entries[1].size, 3u);
  EXPECT_GT(listing->entries[1].mtime_ns, 0);
  EXPECT_EQ(listing->entries[2].type, undo::NodeType::kSymlink);
  EXPECT_EQ(listing->entries[2].target, "b.txt");
  EXPECT_FALSE(listing->more);
}

TEST_F(ListDirectoryTest, PagesNeitherRepeatNorMissAName) {
  for (int i = 0; i < 25; ++i) workspace_.WriteFile("d/f" + std::to_string(i), "");
  size_t seen = 0;
  std::string after;
  while (true) {
    const auto page = ListDirectory(root_.get(), {"d", after, 10});
    ASSERT_TRUE(page.ok());
    EXPECT_EQ(page->total, 25u);
    for (const ListedEntry& entry : page->entries) {
      EXPECT_LT(after, entry.name);
      after = entry.name;
      ++seen;
    }
    if (!page->more) break;
  }
  EXPECT_EQ(seen, 25u);
}

TEST_F(ListDirectoryTest, RefusesWhatIsNoFolderOrOutside) {
  workspace_.WriteFile("a", "");
  EXPECT_EQ(ListDirectory(root_.get(), {"a"}).error().code(), Code::kInvalid);
  EXPECT_EQ(ListDirectory(root_.get(), {".."}).error().code(), Code::kOutsideRoot);
  EXPECT_EQ(ListDirectory(root_.get(), {"none"}).error().code(), Code::kNotFound);
  EXPECT_EQ(ListDirectory(root_.get(), {"", "", 0}).error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace sandglass::session::files
