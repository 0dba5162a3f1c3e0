// Files of the working directories, and nothing else.
#include <gmock/gmock.h>

#include "tests/api/serve_fixture.h"

namespace sandglass::test {
namespace {

class ServeFiles : public ServeFixture {
 protected:
  void SetUp() override {
    ServeFixture::SetUp();
    if (!IsSkipped()) Start();
  }
  std::string Read(const std::string& path) {
    return client_->Result("fs.read", fmt::format(R"({{"path":"{}"}})", path))
        .GetString("content")
        .value();
  }
};

TEST_F(ServeFiles, ReadsTextAndBytesAndParts) {
  EXPECT_EQ(Read("src/main.c"), "int main;\n");
  EXPECT_EQ(Read(workspace_.project() + "/keep.txt"), "kept\n");
  workspace_.WriteFile("bytes", std::string("\xff\0\x01", 3));
  const Json bytes = client_->Result("fs.read", R"({"path":"bytes"})");
  EXPECT_EQ(bytes.GetString("encoding").value(), "base64");
  EXPECT_EQ(Must(Base64Decode(bytes.GetString("content").value())), std::string("\xff\0\x01", 3));
  const Json part = client_->Result("fs.read", R"({"path":"keep.txt","offset":1,"limit":2})");
  EXPECT_EQ(part.GetString("content").value(), "ep");
  EXPECT_EQ(part.GetInt("next_offset").value(), 3);
  EXPECT_EQ(client_->Code("fs.read", R"({"path":"bytes","encoding":"utf8"})"), "invalid_argument");
  EXPECT_EQ(client_->Code("fs.read", R"({"path":"missing"})"), "not_found");
  EXPECT_EQ(client_->Code("fs.read", R"({"path":"src"})"), "invalid_argument");
}

TEST_F(ServeFiles, SA_10_APathThatClimbsOutIsRefused) {
  for (const char* path : {"../../etc/passwd", "/etc/passwd", "src/../../x", "out", "out/passwd"}) {
    if (!workspace_.Exists("out"))
      MustCall(::symlink("/etc", workspace_.Path("out").c_str()), "link");
    EXPECT_EQ(client_->Code("fs.read", fmt::format(R"({{"path":"{}"}})", path)), "outside_root")
        << path;
  }
  MustCall(::symlink("src/main.c", workspace_.Path("inside").c_str()), "link");
  EXPECT_EQ(Read("inside"), "int main;\n");
}

TEST_F(ServeFiles, SA_11_AnAbsolutePathElsewhereIsNotListed) {
  EXPECT_EQ(client_->Code("fs.list", R"({"path":"/etc"})"), "outside_root");
  EXPECT_EQ(client_->Code("fs.list", R"({"path":".."})"), "outside_root");
  const Json listed = client_->Result("fs.list");
  EXPECT_EQ(listed.GetInt("total").value(), 2);
  EXPECT_EQ((*listed.Find("entries")->AsArray())[0].GetString("name").value(), "keep.txt");
  const Json page = client_->Result("fs.list", R"({"offset":1,"limit":1})");
  EXPECT_EQ((*page.Find("entries")->AsArray())[0].GetString("name").value(), "src");
}

TEST_F(ServeFiles, SA_12_AnOversizedWriteIsRefused) {
  const std::string large(700 << 10, 'x');
  EXPECT_EQ(client_->Code("fs.write", fmt::format(R"({{"path":"a","content":"{}"}})", large)),
            "limit");
  client_->SendLine(fmt::format(
      R"({{"type":"fs.write","request_id":"w","payload":{{"path":"a","content":"{}"}}}})",
      std::string(2 << 20, 'x')));
  EXPECT_EQ(JsonlClient::CodeOf(client_->ResponseWithoutId()), "too_long");
  EXPECT_FALSE(workspace_.Exists("a"));
}

TEST_F(ServeFiles, AWriteIsAStepThatUndoTakesBack) {
  MustCall(::chmod(workspace_.Path("keep.txt").c_str(), 0640), "chmod");
  const TreeSnapshot before = workspace_.Snapshot();
  const Json written = client_->Result("fs.write", R"({"path":"keep.txt","content":"new\n"})");
  EXPECT_EQ(written.GetInt("step_id").value(), 1);
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "new\n");
  struct stat stat{};
  MustCall(::stat(workspace_.Path("keep.txt").c_str(), &stat), "stat");
  EXPECT_EQ(stat.st_mode & 07777, 0640u);
  client_->Result("fs.write",
                  R"({"path":"a/b/c","content":"/wA=","encoding":"base64","create_parents":true})");
  EXPECT_EQ(workspace_.ReadFile("a/b/c"), std::string("\xff\0", 2));
  const Json history = client_->Result("undo.history");
  EXPECT_EQ((*history.Find("steps")->AsArray())[0].GetString("type").value(), "api");
  client_->Result("undo.rollback", R"({"count":2})");
  EXPECT_EQ(Diff(before, workspace_.Snapshot()), std::vector<std::string>());
}

TEST_F(ServeFiles, ReadsLinesAndNeverHalfACharacter) {
  workspace_.WriteFile("lines", "one\ntwo\nthree\n");
  const Json lines =
      client_->Result("fs.read", R"({"path":"lines","first_line":2,"line_count":1})");
  EXPECT_EQ(lines.GetString("content").value(), "two\n");
  EXPECT_EQ(lines.GetInt("next_line").value(), 3);
  workspace_.WriteFile("umlauts", "aäö");
  const Json part = client_->Result("fs.read", R"({"path":"umlauts","limit":4})");
  EXPECT_EQ(part.GetString("content").value(), "aä");
  EXPECT_EQ(part.GetInt("next_offset").value(), 3);
}

TEST_F(ServeFiles, AnEditIsAStepAndKeepsLineEnds) {
  workspace_.WriteFile("dos.txt", "one\r\ntwo\r\none\r\n");
  const TreeSnapshot before = workspace_.Snapshot();
  const Json edited =
      client_->Result("fs.edit", R"({"path":"dos.txt","old_text":"two\n","new_text":"2\n3\n"})");
  EXPECT_EQ(edited.GetInt("replaced").value(), 1);
  EXPECT_EQ(edited.GetInt("first_line").value(), 2);
  EXPECT_EQ(workspace_.ReadFile("dos.txt"), "one\r\n2\r\n3\r\none\r\n");
  EXPECT_EQ(client_->Code("fs.edit", R"({"path":"dos.txt","old_text":"one","new_text":"1"})"),
            "conflict");
  EXPECT_EQ(client_->Code("fs.edit", R"({"path":"dos.txt","old_text":"four","new_text":"1"})"),
            "not_found");
  EXPECT_EQ(client_
                ->Result("fs.edit",
                         R"({"path":"dos.txt","old_text":"one","new_text":"1","replace_all":true})")
                .GetInt("replaced")
                .value(),
            2);
  client_->Result("undo.rollback", R"({"count":2})");
  EXPECT_EQ(Diff(before, workspace_.Snapshot()), std::vector<std::string>());
}

TEST_F(ServeFiles, FindsFilesAndLinesInPages) {
  workspace_.WriteFile(".gitignore", "*.o\n");
  workspace_.WriteFile("src/main.o", "int object;\n");
  workspace_.WriteFile("src/more.c", "// int\nint more;\nlong rest;\n");
  const Json found = client_->Result("fs.glob", R"({"pattern":"**/*.[co]","order":"name"})");
  EXPECT_EQ(found.GetInt("total").value(), 2);
  EXPECT_EQ((*found.Find("matches")->AsArray())[0].GetString("path").value(), "src/main.c");
  const Json first = client_->Result("fs.grep", R"({"pattern":"^int","limit":1})");
  const Json& file = (*first.Find("files")->AsArray())[0];
  EXPECT_EQ(file.GetString("path").value(), "src/main.c");
  const Json& line = (*file.Find("lines")->AsArray())[0];
  EXPECT_EQ(line.GetString("text").value(), "int main;");
  const Json second = client_->Result(
      "fs.grep", fmt::format(R"({{"pattern":"^int","after":1,"limit":5,"cursor":{}}})",
                             WriteJson(*first.Find("next"))));
  const Json& more = (*second.Find("files")->AsArray())[0];
  EXPECT_EQ(more.GetString("path").value(), "src/more.c");
  EXPECT_EQ(more.GetInt("matches").value(), 1);
  EXPECT_EQ(more.Find("lines")->AsArray()->size(), 2u);
  EXPECT_TRUE(second.Find("next")->is_null());
  EXPECT_EQ(client_->Code("fs.grep", R"({"pattern":"("})"), "invalid_argument");
  EXPECT_EQ(client_->Code("fs.glob", R"({"pattern":"*","path":"../"})"), "outside_root");
}

TEST_F(ServeFiles, AWriteKeepsHardLinksTogetherAndFollowsNoSymlink) {
  MustCall(::link(workspace_.Path("keep.txt").c_str(), workspace_.Path("other").c_str()), "link");
  MustCall(::symlink("keep.txt", workspace_.Path("pointer").c_str()), "link");
  const TreeSnapshot before = workspace_.Snapshot();
  client_->Result("fs.write", R"({"path":"keep.txt","content":"new\n"})");
  EXPECT_EQ(workspace_.ReadFile("other"), "new\n");
  EXPECT_EQ(client_->Code("fs.write", R"({"path":"pointer","content":""})"), "invalid_argument");
  client_->Result("fs.write", R"({"path":"empty","content":""})");
  EXPECT_EQ(workspace_.ReadFile("empty"), "");
  client_->Result("undo.rollback", R"({"count":2})");
  EXPECT_EQ(Diff(before, workspace_.Snapshot()), std::vector<std::string>());
}

TEST_F(ServeFiles, AWriteThatFailsLeavesNothing) {
  const TreeSnapshot before = workspace_.Snapshot();
  MustCall(::symlink("/etc", workspace_.Path("../out").c_str()), "link");
  EXPECT_EQ(client_->Code("fs.write", R"({"path":"a/b","content":""})"), "not_found");
  EXPECT_EQ(client_->Code("fs.write", R"({"path":"src","content":""})"), "invalid_argument");
  EXPECT_EQ(client_->Code("fs.write", R"({"path":"../x","content":""})"), "outside_root");
  EXPECT_EQ(client_->Code("fs.write", R"({"path":"x","content":"?","encoding":"base64"})"),
            "invalid_argument");
  EXPECT_EQ(Diff(before, workspace_.Snapshot()), std::vector<std::string>());
  EXPECT_EQ(client_->Result("undo.history").GetInt("total").value(), 0);
}

}  // namespace
}  // namespace sandglass::test
