// Configuration files of other programs, in which we change one entry. The first byte chooses the format. What is taken at all can be
// changed, stays of its format, is not changed twice, and is as before without the entry once it had none.
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/json.h"
#include "cli/config_splice.h"

using sandglass::Result;
namespace cli = sandglass::cli;

namespace {

constexpr cli::EntryName kEntry{"servers", "us"};
constexpr std::string_view kValue = "{\n  \"a\": 1\n}";

void CheckJson(std::string_view text) {
  const Result<std::string> set = cli::SetJsonEntry(text, kEntry, kValue);
  const Result<std::string> removed = cli::RemoveJsonEntry(text, kEntry);
  const Result<std::string> found = cli::FindJsonEntry(text, kEntry);
  CHECK(set.ok() == removed.ok() && set.ok() == found.ok());
  if (!set.ok()) return;
  CHECK(found->empty() == (*removed == text) && text.find(*found) != text.npos);
  const auto parsed = sandglass::ParseJson(*set, 64 << 20);
  // Only what was as deep as can be becomes too deep.
  if (!parsed.ok()) return;
  CHECK(parsed->Find(kEntry.table)->Find(kEntry.name)->GetInt("a").value() == 1);
  CHECK(cli::SetJsonEntry(*set, kEntry, kValue).value() == *set);
  const std::string without = cli::RemoveJsonEntry(*set, kEntry).value();
  CHECK(cli::RemoveJsonEntry(without, kEntry).value() == without);
  if (!text.empty() && *removed == text && text.find("servers") != text.npos &&
      sandglass::ParseJson(text, 64 << 20)->Find(kEntry.table) != nullptr) {
    CHECK(sandglass::ParseJson(without, 64 << 20).value() ==
          sandglass::ParseJson(text, 64 << 20).value());
  }
}

void CheckToml(std::string_view text) {
  const Result<std::string> set = cli::SetTomlEntry(text, kEntry, "a = 1\n");
  const Result<std::string> removed = cli::RemoveTomlEntry(text, kEntry);
  const Result<std::string> found = cli::FindTomlEntry(text, kEntry);
  CHECK(set.ok() == removed.ok() && set.ok() == found.ok());
  if (!set.ok()) return;
  CHECK(found->size() + removed->size() == text.size());
  CHECK(set->find("[servers.us]\na = 1\n") != set->npos);
  CHECK(cli::SetTomlEntry(*set, kEntry, "a = 1\n").value() == *set);
  const std::string without = cli::RemoveTomlEntry(*set, kEntry).value();
  CHECK(cli::RemoveTomlEntry(without, kEntry).value() == without);
  // All that is gained is an end of the last line.
  if (*removed == text) CHECK(without.starts_with(text) && without.size() <= text.size() + 2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text = sandglass::AsText(sandglass::ByteView(data + 1, size - 1));
  if (data[0] % 2 == 0)
    CheckJson(text);
  else
    CheckToml(text);
  return 0;
}
