// A value against a schema: the first byte chooses one of those that operations and events have.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "api/operation.h"
#include "api/schema.h"
#include "base/bytes.h"

namespace api = sandglass::api;

namespace {

const std::vector<const api::Schema*>& AllSchemas() {
  static const auto* const kAll = [] {
    auto* all = new std::vector<const api::Schema*>;
    for (const api::Operation& operation : api::AllOperations()) {
      all->push_back(operation.request);
      all->push_back(operation.result);
    }
    for (const api::Event& event : api::AllEvents()) all->push_back(event.payload);
    return all;
  }();
  return *kAll;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto json =
      sandglass::ParseJson(sandglass::AsText(sandglass::ByteView(data + 1, size - 1)));
  if (!json.ok()) return 0;
  const api::Schema& schema = *AllSchemas()[data[0] % AllSchemas().size()];
  CHECK(sandglass::ParseJson(sandglass::WriteJson(api::ToJsonSchema(schema))).ok());
  const auto wrong = api::FindMismatch(schema, *json);
  CHECK(!wrong || (!wrong->message.empty() && sandglass::IsValidUtf8(wrong->path)));
  // It is data, so it says the same again, also after the value was written down.
  const auto again = sandglass::ParseJson(sandglass::WriteJson(*json), 64 << 20);
  CHECK(again.ok() && api::FindMismatch(schema, *again).has_value() == wrong.has_value());
  return 0;
}
