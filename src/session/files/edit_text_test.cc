#include "session/files/edit_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <string>

namespace sandglass::session::files {
namespace {

using testing::HasSubstr;

std::string Edit(std::string_view content, std::string_view old_text, std::string_view new_text,
                 Occurrences occurrences = Occurrences::kExactlyOne) {
  const auto edited = EditText(content, {old_text, new_text, occurrences});
  return edited.ok() ? edited->content : "ERROR " + edited.error().ToString();
}

std::string Utf16(std::u16string_view text, Encoding encoding) {
  return (encoding == Encoding::kUtf16Le ? "\xFF\xFE" : "\xFE\xFF") + EncodeUtf16(text, encoding);
}

TEST(EditText, ReplacesTheOnePlaceAndNothingElse) {
  EXPECT_EQ(Edit("one two three", "two", "2"), "one 2 three");
  EXPECT_EQ(Edit("a\nb\nc\n", "b\n", ""), "a\nc\n");
  EXPECT_EQ(Edit("x", "x", "a\nb"), "a\nb");
}

TEST(EditText, TellsHowOftenAndWhereItReplaced) {
  const auto edited = EditText("a\nb\na\n", {"a", "A", Occurrences::kAll});
  ASSERT_TRUE(edited.ok());
  EXPECT_EQ(edited->content, "A\nb\nA\n");
  EXPECT_EQ(edited->replaced, 2u);
  EXPECT_EQ(edited->first_line, 1u);
}

TEST(EditText, RefusesMoreThanOnePlaceWithCountAndLines) {
  const auto edited = EditText("x\ny\nx\nx\n", {"x", "z"});
  ASSERT_FALSE(edited.ok());
  EXPECT_EQ(edited.error().code(), Code::kConflict);
  EXPECT_THAT(edited.error().message(), HasSubstr("3 places, beginning in lines 1, 3, 4"));
}

TEST(EditText, PlacesThatOverlapAreAmbiguousToo) {
  EXPECT_THAT(Edit("aaa", "aa", "b"), HasSubstr("2 places"));
  EXPECT_EQ(Edit("aaaa", "aa", "b", Occurrences::kAll), "bb");
}

TEST(EditText, NamesTheNearestLineWhereNothingMatches) {
  const std::string file = "int main() {\n  return run(argc, argv);\n}\n";
  EXPECT_THAT(Edit(file, "  return run(argc, args);", "x"),
              HasSubstr("(0 places); the nearest is line 2: return run(argc, argv);"));
  EXPECT_THAT(Edit(file, "\treturn run(argc, argv);", "x"),
              HasSubstr("line 2 has its first line, so white space"));
  EXPECT_THAT(Edit(file, "nothing like it anywhere", "x"), HasSubstr("read the file again"));
  EXPECT_THAT(Edit("", "a", "b"), HasSubstr("not_found"));
}

TEST(EditText, RefusesWhatIsNoEdit) {
  EXPECT_THAT(Edit("a", "", "b"), HasSubstr("invalid"));
  EXPECT_THAT(Edit("a", "a", "a"), HasSubstr("nothing to change"));
  EXPECT_THAT(Edit("a\r\n", "a\n", "a\r\n"), HasSubstr("nothing to change"));
  EXPECT_THAT(Edit("a", "\xFF", "b"), HasSubstr("UTF-8"));
  EXPECT_THAT(Edit(std::string_view("a\0b", 3), "a", "b"), HasSubstr("binary"));
}

TEST(EditText, KeepsCarriageReturnsOfTheFile) {
  EXPECT_EQ(Edit("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz"), "x\r\ny\r\nz\r\nc\r\n");
  EXPECT_EQ(Edit("a\r\nb", "b", "1\n2"), "a\r\n1\r\n2");
  EXPECT_EQ(Edit("a\nb\n", "a\r\nb", "1\r\n2"), "1\n2\n");
}

TEST(EditText, EachLineBreakOfAMixedFileStaysAsItWas) {
  EXPECT_EQ(Edit("a\r\nb\nc\r\nd\n", "a\nb\nc", "1\n2\n3"), "1\r\n2\n3\r\nd\n");
  EXPECT_EQ(Edit("a\r\nb\nc\n", "b", "1\n2"), "a\r\n1\n2\nc\n");
  EXPECT_EQ(Edit("a\nb\r\nc\n", "b", "1\n2"), "a\n1\r\n2\r\nc\n");
}

TEST(EditText, ALoneCarriageReturnIsACharacter) {
  EXPECT_EQ(Edit("a\rb\n", "a\rb", "c\rd"), "c\rd\n");
}

TEST(EditText, KeepsAMissingFinalLineBreak) {
  EXPECT_EQ(Edit("a\nb", "b", "c"), "a\nc");
  EXPECT_EQ(Edit("a\r\nb", "a\n", "c\n"), "c\r\nb");
}

TEST(EditText, KeepsTheMarkOfUtf8) {
  EXPECT_EQ(Edit("\xEF\xBB\xBFgr\xC3\xBC\xC3\x9F", "\xC3\xBC", "u"), "\xEF\xBB\xBFgru\xC3\x9F");
}

TEST(EditText, EditsBothKindsOfUtf16) {
  for (const Encoding encoding : {Encoding::kUtf16Le, Encoding::kUtf16Be}) {
    const std::string file = Utf16(u"gr\u00FC\u00DF\r\n\U0001F600\r\n", encoding);
    EXPECT_EQ(Edit(file, "\xC3\xBC\xC3\x9F\n", "\xF0\x9F\x98\x81\n"),
              Utf16(u"gr\U0001F601\r\n\U0001F600\r\n", encoding));
  }
}

TEST(EditText, KeepsWhatIsBrokenInUtf16) {
  const std::string file =
      Utf16(std::u16string(u"a\xD800z"), Encoding::kUtf16Le) + "\x01";  // half a pair, half a unit
  EXPECT_EQ(Edit(file, "z", "y"), Utf16(std::u16string(u"a\xD800y"), Encoding::kUtf16Le) + "\x01");
}

TEST(EditText, Latin1StaysByteForByte) {
  EXPECT_EQ(Edit("gr\xFC\xDF \x80\x9F", "\xC3\xBC", "\xC3\xA4"), "gr\xE4\xDF \x80\x9F");
  EXPECT_THAT(Edit("gr\xFC", "gr", "\xE2\x82\xAC"), HasSubstr("cannot write"));
  // Mostly UTF-8 with one bad byte.
  EXPECT_EQ(Edit("\xC3\xBC \xFF", "\xC3\xBC", "\xE2\x82\xAC"), "\xE2\x82\xAC \xFF");
}

TEST(EditText, TextsThatRepeatThemselvesCostLinearTime) {
  const std::string file(2 << 20, 'a');
  const std::string wanted = std::string(1 << 20, 'a') + "b";
  const std::clock_t start = std::clock();
  EXPECT_THAT(Edit(file, wanted, "c"), HasSubstr("not_found"));
  EXPECT_EQ(Edit(file, "a", "b\n", Occurrences::kAll).size(), file.size() * 2);
  EXPECT_LT(std::clock() - start, 20 * CLOCKS_PER_SEC);
}

TEST(Encoding, IsToldByMarkThenByContent) {
  EXPECT_EQ(DetectEncoding(""), Encoding::kUtf8);
  EXPECT_EQ(DetectEncoding("\xEF\xBB\xBF"), Encoding::kUtf8WithMark);
  EXPECT_EQ(DetectEncoding("\xFF\xFE"), Encoding::kUtf16Le);
  EXPECT_EQ(DetectEncoding("\xFE\xFF"), Encoding::kUtf16Be);
  EXPECT_EQ(DetectEncoding(std::string_view("\xFF\xFE\0\0", 4)), Encoding::kBinary);
  EXPECT_EQ(DetectEncoding("\xE4"), Encoding::kBytes);
  EXPECT_EQ(DetectEncoding(std::string_view("\0", 1)), Encoding::kBinary);
}

}  // namespace
}  // namespace sandglass::session::files
