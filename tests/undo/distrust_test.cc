// What the store could not hold, has lost or cannot reach now is never taken for nothing: the operation is refused, or the rollback is.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <string>

#include "tests/support/must.h"
#include "tests/undo/forked.h"
#include "tests/undo/undo_fixture.h"

namespace sandglass::undo {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class UndoDistrust : public UndoTest {
 protected:
  void SetUp() override { options_.compression = Compression::kOff; }
  void Start() {
    test::AgeTree(workspace().project());
    OpenLog();
  }
};

// --- What no reader would take is not written.

// A file with as many attributes as asked for, made by a person.
class UndoManyXattrs : public UndoDistrust {
 protected:
  static std::string Name(int n) { return fmt::format("user.x{}", n); }
  bool Give(std::string_view path, int count, const std::string& value) {
    for (int n = 0; n < count; ++n) {
      if (::setxattr(workspace().Path(path).c_str(), Name(n).c_str(), value.data(), value.size(),
                     0) != 0)
        return false;
    }
    return true;
  }
  // What cannot be recorded is refused, and the rest of the step is undone exactly.
  void ExpectRefusedAndTheRestUndone() {
    workspace().WriteFile("precious", "precious");
    Start();
    const TreeSnapshot before = Snapshot();
    InStep([&] {
      EXPECT_CODE(ops().Chmod("a", 0600), Code::kNotRestorable);
      EXPECT_CODE(ops().Overwrite("a", "new"), Code::kNotRestorable);
      EXPECT_OK(ops().Unlink("precious"));
    });
    EXPECT_THAT(RollBack().warnings, IsEmpty());
    ExpectTree(before);
  }
};

TEST_F(UndoManyXattrs, ARecordLargerThanAnyReaderTakesIsRefused) {
  workspace().WriteFile("a", "old");
  if (!Give("a", 300, Noise(60000))) GTEST_SKIP() << "no room for so many attributes";
  ExpectRefusedAndTheRestUndone();
}

TEST_F(UndoManyXattrs, MoreAttributesThanAnyReaderTakesAreRefused) {
  workspace().WriteFile("a", "old");
  if (!Give("a", 4200, "v")) GTEST_SKIP() << "no room for so many attributes";
  ExpectRefusedAndTheRestUndone();
}

TEST_F(UndoManyXattrs, AStepCannotGiveAFileMoreThanItsRollbackCouldRecord) {
  workspace().WriteFile("a", "old");
  Start();
  const TreeSnapshot before = Snapshot();
  const std::string value = Noise(60000);
  int given = 0;
  InStep([&] {
    Status set;
    while (given < 300 && set.ok()) {
      set = ops().SetXattr("a", Name(given), value);
      if (set.ok()) ++given;
    }
    EXPECT_FALSE(set.ok());
  });
  if (given < 200) GTEST_SKIP() << "no room for so many attributes";
  RollBack();
  ExpectTree(before);
  RedoSteps();
  EXPECT_GT(::getxattr(workspace().Path("a").c_str(), Name(given - 1).c_str(), nullptr, 0), 0);
}

}  // namespace
}  // namespace sandglass::undo
