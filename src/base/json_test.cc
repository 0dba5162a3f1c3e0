#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace sandglass {
namespace {

using std::string_view_literals::operator""sv;

std::string Reprint(std::string_view text) {
  auto value = ParseJson(text);
  return value.ok() ? WriteJson(*value) : value.error().ToString();
}

Code ParseCode(std::string_view text, size_t max_bytes = 1 << 20) {
  const auto value = ParseJson(text, max_bytes);
  CHECK(!value.ok());
  return value.error().code();
}

TEST(Json, IsBuiltFromPlainValuesInTheGivenOrder) {
  Json value = Json::Object({{"id", 7}, {"name", "main.cc"}, {"none", nullptr}, {"ok", true}});
  value.Set("list", Json::Array({1, "two", 2.5, Json::Array()}));
  value.Set("id", uint64_t{8});
  EXPECT_EQ(WriteJson(value),
            R"({"id":8,"name":"main.cc","none":null,"ok":true,"list":[1,"two",2.5,[]]})");
}

TEST(Json, NullGrowsIntoWhatIsPutIn) {
  Json object;
  object.Set("a", 1).Set("b", std::string("x"));
  Json array;
  array.Append(object).Append(nullptr);
  EXPECT_EQ(WriteJson(array), R"([{"a":1,"b":"x"},null])");
}

TEST(Json, AWrongTypeIsAnAnswer) {
  const Json number = 3;
  EXPECT_EQ(number.AsString(), nullptr);
  EXPECT_EQ(number.AsArray(), nullptr);
  EXPECT_EQ(number.AsObject(), nullptr);
  EXPECT_EQ(number.AsBool(), std::nullopt);
  EXPECT_EQ(number.Find("x"), nullptr);
  EXPECT_EQ(Json("x").AsDouble(), std::nullopt);
  EXPECT_EQ(Json(true).AsInt(), std::nullopt);
}

TEST(Json, IntegersFitOrAreRefused) {
  constexpr auto kLarge = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(Json(kLarge).AsUint(), kLarge);
  EXPECT_EQ(Json(kLarge).AsInt(), std::nullopt);
  EXPECT_EQ(Json(-1).AsUint(), std::nullopt);
  EXPECT_EQ(Json(5U).AsInt(), 5);
  EXPECT_EQ(Json(5).AsUint(), 5U);
  EXPECT_EQ(Json(3.0).AsInt(), std::nullopt);
  EXPECT_EQ(Json(3).AsDouble(), 3.0);
  EXPECT_EQ(Json(kLarge).AsDouble(), static_cast<double>(kLarge));
}

TEST(Json, RequiredMembersNameThemselvesWhenMissing) {
  const Json value = Json::Object({{"s", "x"}, {"i", -2}, {"u", 2U}, {"b", false}});
  EXPECT_EQ(value.GetString("s").value(), "x");
  EXPECT_EQ(value.GetInt("i").value(), -2);
  EXPECT_EQ(value.GetUint("u").value(), 2U);
  EXPECT_EQ(value.GetBool("b").value(), false);
  EXPECT_FALSE(value.GetString("i").ok());
  EXPECT_FALSE(value.GetInt("s").ok());
  EXPECT_FALSE(value.GetUint("i").ok());
  EXPECT_FALSE(value.GetBool("s").ok());
  EXPECT_NE(value.GetInt("gone").error().message().find("\"gone\""), std::string::npos);
}

TEST(Json, EqualityIsStructural) {
  EXPECT_EQ(Json(1), Json(1U));
  EXPECT_NE(Json(1), Json(1.0));
  EXPECT_NE(Json(1), Json("1"));
  EXPECT_EQ(Json(), Json(nullptr));
  EXPECT_EQ(Json::Object({{"a", Json::Array({1U})}}), Json::Object({{"a", Json::Array({1})}}));
  EXPECT_NE(Json::Object({{"a", 1}}), Json::Object({{"a", 2}}));
}

TEST(ParseJson, RoundTripsEveryKindOfValue) {
  for (const auto text : {R"(null)", R"(true)", R"(false)", R"(0)", R"(-9223372036854775808)",
                          R"(18446744073709551615)", R"(1.5)", R"(2.0)", R"("text")", R"([])",
                          R"({})", R"({"a":[1,{"b":"\n\"\\"}],"c":"é😀"})"}) {
    EXPECT_EQ(Reprint(text), text);
  }
  EXPECT_EQ(Reprint(" { \"a\" : 1e2 } "), R"({"a":100.0})");
  EXPECT_EQ(Reprint(R"("\u00e9\ud83d\ude00\/")"), R"("é😀/")");
  EXPECT_EQ(Reprint(R"({"a":1,"a":2})"), R"({"a":2})");
}

TEST(ParseJson, RefusesWhatIsNotJson) {
  for (const auto text : {"", " ", "{", "[1,]", "{a:1}", "01", "nul", "\"\xff\"", "\"\n\"", "1 2",
                          "'x'", "NaN", R"("\ud800")", "// c\n1"}) {
    EXPECT_EQ(ParseCode(text), Code::kInvalid) << text;
  }
  EXPECT_EQ(ParseCode("\0"sv), Code::kInvalid);
}

TEST(ParseJson, LimitsSizeAndDepth) {
  EXPECT_EQ(ParseCode("[1,2,3]", 6), Code::kLimit);
  EXPECT_TRUE(ParseJson("[1,2,3]", 7).ok());
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(ParseJson(nested(kMaxJsonDepth)).ok());
  EXPECT_EQ(ParseCode(nested(kMaxJsonDepth + 1)), Code::kInvalid);
  EXPECT_EQ(ParseCode(std::string(1 << 20, '[')), Code::kInvalid);
}

TEST(WriteJson, IsAlwaysValidJson) {
  EXPECT_EQ(WriteJson("\x01\x1f\x7f\r\t"), "\"\\u0001\\u001f\x7f\\r\\t\"");
  EXPECT_EQ(WriteJson("a\xff"
                      "b\xe2\x82"),
            "\"a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(WriteJson("\0x"sv), R"("\u0000x")");
  EXPECT_EQ(WriteJson(Json::Object({{"k\xff\"", 1}})), "{\"k\xEF\xBF\xBD\\\"\":1}");
  EXPECT_EQ(WriteJson(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(WriteJson(std::nan("")), "null");
}

// Texts are looked at eight bytes at a time: whatever is special must be seen at each place.
TEST(WriteJson, SeesWhatIsSpecialWhereverItStands) {
  for (int c = 0; c < 0x100; ++c) {
    for (size_t at = 0; at < 20; ++at) {
      std::string text(20, 'x');
      text[at] = static_cast<char>(c);
      EXPECT_EQ(IsValidUtf8(text), c < 0x80) << c << " at " << at;
      const auto back = ParseJson(WriteJson(text));
      ASSERT_TRUE(back.ok()) << c << " at " << at;
      if (c < 0x80) EXPECT_EQ(*back->AsString(), text) << c << " at " << at;
    }
  }
}

TEST(WriteJson, ANumberComesBackAsItWas) {
  for (const double number : {0.1, 1e300, -2.5e-10, 1.0, 123456789012345680.0, 5e-324}) {
    const auto back = ParseJson(WriteJson(number));
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back->AsDouble(), number);
    EXPECT_EQ(back->AsInt(), std::nullopt);
  }
}

TEST(Utf8, AcceptsExactlyWhatTheStandardDoes) {
  for (const auto good : {""sv, "a\0b"sv, "\xC2\x80"sv, "\xDF\xBF"sv, "\xE0\xA0\x80"sv,
                          "\xED\x9F\xBF"sv, "\xEE\x80\x80"sv, "\xEF\xBF\xBF"sv,
                          "\xF0\x90\x80\x80"sv, "\xF1\x80\x80\x80"sv, "\xF4\x8F\xBF\xBF"sv}) {
    EXPECT_TRUE(IsValidUtf8(good)) << Base64Encode(good);
  }
  for (const auto bad :
       {"\x80"sv, "\xC0\x80"sv, "\xC1\xBF"sv, "\xC2"sv, "\xC2\x41"sv, "\xE0\x9F\xBF"sv,
        "\xED\xA0\x80"sv, "\xE2\x82"sv, "\xE2\x82\x41"sv, "\xF0\x8F\xBF\xBF"sv,
        "\xF4\x90\x80\x80"sv, "\xF5\x80\x80\x80"sv, "\xFF"sv, "\xF0\x90\x80"sv}) {
    EXPECT_FALSE(IsValidUtf8(bad)) << Base64Encode(bad);
  }
}

TEST(BytesToJson, LosesNothing) {
  for (const auto name :
       {""sv, "plain"sv, "new\nline"sv, "é"sv, "\xff\xfe"sv, "a\0b"sv, "{\"base64\":1}"sv}) {
    const auto text = WriteJson(BytesToJson(name));
    const auto back = BytesFromJson(ParseJson(text).value());
    ASSERT_TRUE(back.ok()) << text;
    EXPECT_EQ(*back, name);
  }
  EXPECT_EQ(WriteJson(BytesToJson("\xff\xfe")), R"({"base64":"//4="})");
}

TEST(BytesFromJson, RefusesEveryOtherShape) {
  for (const auto text : {"1", "[]", "{}", R"({"base64":1})", R"({"base64":"?"})",
                          R"({"base64":"","x":1})", R"({"other":""})"}) {
    EXPECT_EQ(BytesFromJson(ParseJson(text).value()).error().code(), Code::kInvalid) << text;
  }
}

TEST(Base64, MatchesTheVectorsOfItsStandard) {
  const std::pair<std::string_view, std::string_view> vectors[] = {{"", ""},
                                                                   {"f", "Zg=="},
                                                                   {"fo", "Zm8="},
                                                                   {"foo", "Zm9v"},
                                                                   {"foob", "Zm9vYg=="},
                                                                   {"fooba", "Zm9vYmE="},
                                                                   {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, encoded] : vectors) {
    EXPECT_EQ(Base64Encode(plain), encoded);
    EXPECT_EQ(Base64Decode(encoded).value(), plain);
  }
}

TEST(Base64, RoundTripsEveryByte) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  EXPECT_EQ(Base64Decode(Base64Encode(bytes)).value(), bytes);
}

TEST(Base64, DecodingIsStrict) {
  for (const auto bad : {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "Zm 9",
                         "Z===", "====", "=Zg=", "Zg==Zg==", "Zm-_", "Zm9v\n"}) {
    EXPECT_EQ(Base64Decode(bad).error().code(), Code::kInvalid) << bad;
  }
}

}  // namespace
}  // namespace sandglass
