#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/json.h"
#include "cli/config_splice.h"

namespace sandglass::cli {
namespace {

constexpr size_t kMaxBytes = size_t{32} << 20;
constexpr std::string_view kSpaces = " \t\r\n";

// Of text that is known to be JSON.
struct Member {
  std::string key;
  size_t begin = 0;                       // of its key
  size_t value_begin = 0, value_end = 0;  // which is its end
};
struct Object {
  size_t begin = 0, end = 0;  // the braces, the second one behind
  std::vector<Member> members;
};

size_t SkipSpaces(std::string_view text, size_t at) {
  return std::min(text.find_first_not_of(kSpaces, at), text.size());
}

// Behind the string that begins there.
size_t SkipString(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at + 1;
}

// Behind the value that begins there.
size_t SkipValue(std::string_view text, size_t at) {
  if (text[at] == '"') return SkipString(text, at);
  if (text[at] != '{' && text[at] != '[') {
    return std::min(text.find_first_of(",]} \t\r\n", at), text.size());
  }
  size_t depth = 0;
  do {
    if (text[at] == '"') {
      at = SkipString(text, at);
      continue;
    }
    if (text[at] == '{' || text[at] == '[') ++depth;
    if (text[at] == '}' || text[at] == ']') --depth;
    ++at;
  } while (depth > 0 && at < text.size());
  return at;
}

Object ObjectAt(std::string_view text, size_t begin) {
  Object object{.begin = begin};
  size_t at = SkipSpaces(text, begin + 1);
  while (text[at] != '}') {
    Member member{.begin = at};
    const size_t key_end = SkipString(text, at);
    const auto key = ParseJson(text.substr(at, key_end - at), kMaxBytes);
    if (key.ok() && key->AsString() != nullptr) member.key = *key->AsString();
    member.value_begin = SkipSpaces(text, SkipSpaces(text, key_end) + 1);  // behind the colon
    member.value_end = SkipValue(text, member.value_begin);
    at = SkipSpaces(text, member.value_end);
    object.members.push_back(std::move(member));
    if (text[at] == ',') at = SkipSpaces(text, at + 1);
  }
  object.end = at + 1;
  return object;
}

// Null: there is none. kInvalid: there are several, so nobody can tell which counts.
Result<const Member*> Find(const Object& object, std::string_view key) {
  const auto same = [&](const Member& member) { return member.key == key; };
  if (std::ranges::count_if(object.members, same) > 1)
    return Error(Code::kInvalid, fmt::format("\"{}\" is in there twice", key));
  const auto found = std::ranges::find_if(object.members, same);
  return found != object.members.end() ? &*found : nullptr;
}

// The white space between the line's begin and that place, if there is nothing else.
std::optional<std::string> IndentAt(std::string_view text, size_t at) {
  const size_t line = text.rfind('\n', at);
  const size_t begin = line == text.npos ? 0 : line + 1;
  const std::string_view before = text.substr(begin, at - begin);
  if (line == text.npos || before.find_first_not_of(" \t") != before.npos) return std::nullopt;
  return std::string(before);
}

std::string Indented(std::string_view value, std::string_view indent) {
  std::string out;
  for (const char c : value) {
    out += c;
    if (c == '\n') out += indent;
  }
  return out;
}

std::string MemberText(std::string_view key, std::string_view value, std::string_view indent) {
  std::string out;
  AppendJsonString(out, key);
  return out + ": " + Indented(value, indent);
}

// Behind the last one, laid out as that one is.
std::string WithMember(std::string_view text, const Object& object, std::string_view key,
                       std::string_view value, std::string_view outer) {
  const std::string before(text.substr(0, object.begin + 1));
  if (object.members.empty()) {
    const std::string indent = std::string(outer) + "  ";
    return fmt::format("{}\n{}{}\n{}{}", before, indent, MemberText(key, value, indent), outer,
                       text.substr(object.end - 1));
  }
  const Member& last = object.members.back();
  const auto indent = IndentAt(text, last.begin);
  const std::string gap = indent ? "\n" + *indent : " ";
  return fmt::format("{},{}{}{}", text.substr(0, last.value_end), gap,
                     MemberText(key, value, indent.value_or("")), text.substr(last.value_end));
}

std::string WithoutMember(std::string_view text, const Object& object, const Member& member) {
  const auto index = static_cast<size_t>(&member - object.members.data());
  const bool is_last = index + 1 == object.members.size();
  size_t begin = member.begin, end = member.value_end;
  if (object.members.size() == 1) {
    begin = object.begin + 1;
    end = object.end - 1;
  } else if (is_last) {
    begin = object.members[index - 1].value_end;
  } else {
    end = object.members[index + 1].begin;
  }
  return fmt::format("{}{}", text.substr(0, begin), text.substr(end));
}

Result<Object> RootOf(std::string_view text) {
  const auto parsed = ParseJson(text, kMaxBytes);
  if (!parsed.ok())
    return Error(Code::kInvalid,
                 fmt::format("it is no JSON, or has comments: {}", parsed.error().message()));
  if (parsed->AsObject() == nullptr) return Error(Code::kInvalid, "it holds no JSON object");
  return ObjectAt(text, SkipSpaces(text, 0));
}

Result<Object> TableAt(std::string_view text, const Member& member) {
  if (text[member.value_begin] != '{')
    return Error(Code::kInvalid, fmt::format("\"{}\" is no object", member.key));
  return ObjectAt(text, member.value_begin);
}

}  // namespace

Result<std::string> SetJsonEntry(std::string_view text, const EntryName& entry,
                                 std::string_view value) {
  if (SkipSpaces(text, 0) == text.size()) text = "{}\n";
  TRY_ASSIGN(const Object root, RootOf(text));
  TRY_ASSIGN(const Member* table, Find(root, entry.table));
  if (table == nullptr) {
    const std::string whole = fmt::format("{{\n  {}\n}}", MemberText(entry.name, value, "  "));
    return WithMember(text, root, entry.table, whole, "");
  }
  TRY_ASSIGN(const Object entries, TableAt(text, *table));
  TRY_ASSIGN(const Member* old, Find(entries, entry.name));
  if (old == nullptr)
    return WithMember(text, entries, entry.name, value, IndentAt(text, table->begin).value_or(""));
  const std::string indent = IndentAt(text, old->begin).value_or("");
  return fmt::format("{}{}{}", text.substr(0, old->value_begin), Indented(value, indent),
                     text.substr(old->value_end));
}

Result<std::string> RemoveJsonEntry(std::string_view text, const EntryName& entry) {
  if (SkipSpaces(text, 0) == text.size()) return std::string(text);
  TRY_ASSIGN(const Object root, RootOf(text));
  TRY_ASSIGN(const Member* table, Find(root, entry.table));
  if (table == nullptr) return std::string(text);
  TRY_ASSIGN(const Object entries, TableAt(text, *table));
  TRY_ASSIGN(const Member* old, Find(entries, entry.name));
  if (old == nullptr) return std::string(text);
  return WithoutMember(text, entries, *old);
}

Result<std::string> FindJsonEntry(std::string_view text, const EntryName& entry) {
  if (SkipSpaces(text, 0) == text.size()) return std::string();
  TRY_ASSIGN(const Object root, RootOf(text));
  TRY_ASSIGN(const Member* table, Find(root, entry.table));
  if (table == nullptr) return std::string();
  TRY_ASSIGN(const Object entries, TableAt(text, *table));
  TRY_ASSIGN(const Member* old, Find(entries, entry.name));
  if (old == nullptr) return std::string();
  return std::string(text.substr(old->begin, old->value_end - old->begin));
}

}  // namespace sandglass::cli
