// Fuzzes what reads a store: the journal's header, frames and records, the summary made from them,
// and the index of a compressed pack. undo_journal_input.h says how an input is laid out.
//
// Whatever the bytes: no crash, what decodes encodes to the same bytes again, and memory stays
// within a small multiple of the input.
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <variant>

#include "base/bytes.h"
#include "base/result.h"
#include "fuzz/undo_journal_input.h"
#include "undo/journal_format.h"
#include "undo/journal_view.h"
#include "undo/pack.h"
#include "undo/record.h"
#include "undo/step_view.h"

namespace {

// What operator new has given out and not got back. One thread, and operator new leaves no other
// place for it.
struct HeapMeter {
  size_t live = 0;
  size_t peak = 0;
};
HeapMeter g_heap;  // NOLINT(readability-identifier-naming)

// How much more was in use at the worst moment of its life than at its beginning.
class PeakGrowth {
 public:
  PeakGrowth() : before_(g_heap.live) { g_heap.peak = g_heap.live; }
  size_t bytes() const { return g_heap.peak - before_; }

 private:
  size_t before_;
};

}  // namespace

void* operator new(size_t size) {
  void* block = std::malloc(size);
  if (block == nullptr) std::abort();
  g_heap.live += ::malloc_usable_size(block);
  g_heap.peak = std::max(g_heap.peak, g_heap.live);
  return block;
}
// The standard library sorts with this one, and blocks of both go back through the same operator
// delete.
void* operator new(size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return operator new(size);
}
void operator delete(void* block) noexcept {
  if (block == nullptr) return;
  g_heap.live -= ::malloc_usable_size(block);
  std::free(block);
}
void operator delete(void* block, size_t /*size*/) noexcept { operator delete(block); }

namespace sandglass::fuzz {
namespace {

using undo::JournalView;
using undo::PackIndex;

// Error messages and the label of a header.
constexpr size_t kFixedBytes = 64 << 10;
// The shortest attribute takes 8 bytes in a record and 64 as a pair of strings in a vector that
// grows by doubling.
constexpr size_t kDecodeFactor = 32;

void CheckRecord(const Result<undo::Record>& record) {
  CHECK(record.ok());  // Scanning kept only what decodes.
  ByteWriter once, twice;
  CHECK(undo::EncodeRecord(*record, once).ok());
  const auto again = undo::DecodeRecord(once.bytes());
  CHECK(again.ok());
  CHECK(undo::EncodeRecord(*again, twice).ok());
  CHECK(once.bytes() == twice.bytes());
}

void CheckView(const JournalView& view, ByteView bytes) {
  CHECK(view.end() >= undo::kJournalHeaderBytes && view.end() % 8 == 0);
  CHECK(view.end() < bytes.size() + 8);
  CHECK(view.header().label.size() <= undo::kMaxLabelBytes);
  for (size_t i = 0; i < view.size(); ++i) CheckRecord(view.At(i));
  const auto close = view.Close();
  const bool ends =
      view.size() != 0 && std::holds_alternative<undo::CloseRecord>(*view.At(view.size() - 1));
  CHECK(close.ok() == ends);
}

// A folder that is renamed takes the paths below it along, so the sum of all paths can grow with
// the square of the input.
void CheckSummary(JournalView journal, size_t input_bytes) {
  const PeakGrowth growth;
  const undo::StepView view(std::move(journal));
  const auto changes = view.Changes();
  const auto counts = view.Counts();
  CHECK(counts.total() == changes.size());
  for (const auto& change : changes) {
    CHECK(change.kind == undo::ChangeKind::kRenamed || change.old_path.empty());
  }
  CHECK(growth.bytes() <=
        kFixedBytes + 2 * kDecodeFactor * input_bytes + input_bytes * input_bytes / 4);
}

// Frames without a header, as the notes of shadows hold them. Nothing of them may be wrong, so what was read is what gets written.
void CheckFrames(ByteView bytes) {
  const auto records = undo::DecodeFrames(bytes);
  if (!records.ok()) {
    CHECK(records.error().code() == Code::kCorrupt);
    return;
  }
  const Bytes written = undo::EncodeFrames(*records).value();
  const auto again = undo::DecodeFrames(written);
  CHECK(again.ok() && again->size() == records->size());
  CHECK(std::ranges::equal(*undo::EncodeFrames(*again), written));
}

void CheckJournal(ByteView bytes) {
  if (bytes.size() > undo::kJournalHeaderBytes)
    CheckFrames(bytes.subspan(undo::kJournalHeaderBytes));
  const PeakGrowth growth;
  auto view = JournalView::Parse(bytes);
  if (!view.ok()) {
    CHECK(view.error().code() == Code::kCorrupt || view.error().code() == Code::kVersion);
    return;
  }
  CheckView(*view, bytes);
  CHECK(growth.bytes() <= kFixedBytes + kDecodeFactor * bytes.size());
  CheckSummary(std::move(*view), bytes.size());
}

void PutFrame(ByteView payload, ByteWriter& out) {
  out.Put(static_cast<uint32_t>(payload.size()));
  out.Put(undo::FrameChecksum(payload));
  out.PutBytes(payload);
  out.PutBytes(Bytes(undo::FrameBytes(payload.size()) - undo::kFrameHeadBytes - payload.size()));
}

// What is missing at the end of the input counts as empty.
Bytes SealJournal(ByteView input) {
  ByteCursor in(input);
  const auto kind = in.Take<uint8_t>(), label_bytes = in.Take<uint8_t>();
  const auto label = in.TakeBytes(label_bytes.ok() ? *label_bytes : 0);
  std::array<uint8_t, undo::kJournalHeaderBytes> page{};
  undo::EncodeJournalHeader(
      {.id = {1},
       .kind = static_cast<undo::StepKind>(kind.ok() ? *kind : 0),  // any value: that is the point
       .label = label.ok() ? std::string(AsText(*label)) : std::string()},
      page);
  ByteWriter out;
  out.PutBytes(page);
  while (!in.empty()) {
    const auto length = in.Take<uint16_t>();
    if (!length.ok()) break;
    const auto payload = in.TakeBytes(std::min<size_t>(*length, in.remaining()));
    PutFrame(*payload, out);
  }
  return out.bytes();
}

void CheckPack(ByteView tail, uint64_t frames_end) {
  const PeakGrowth growth;
  const auto index = PackIndex::Parse(tail, frames_end);
  CHECK(growth.bytes() <= kFixedBytes + 2 * tail.size());
  if (!index.ok()) {
    CHECK(index.error().code() == Code::kCorrupt);
    return;
  }
  CHECK(index->ends.empty() || index->ends.back() == frames_end);
  CHECK(std::ranges::is_sorted(index->ends));
  // A reader may look up the chunk of every offset below the raw size.
  CHECK(index->raw_bytes / undo::kPackChunkBytes <= index->ends.size());
  CHECK(index->raw_bytes <= index->ends.size() * uint64_t{undo::kPackChunkBytes});
  const Bytes again = index->Encode();
  CHECK(std::ranges::equal(again, tail));
}

void CheckRawPack(ByteView input) {
  ByteCursor in(input);
  const auto frames_end = in.Take<uint64_t>();
  if (frames_end.ok()) CheckPack(*in.TakeBytes(in.remaining()), *frames_end);
}

void CheckSealedPack(ByteView input) {
  ByteCursor in(input);
  const auto raw_bytes = in.Take<uint64_t>();
  PackIndex index{.raw_bytes = raw_bytes.ok() ? *raw_bytes : 0};
  for (auto end = in.Take<uint64_t>(); end.ok(); end = in.Take<uint64_t>())
    index.ends.push_back(*end);
  CheckPack(index.Encode(), index.ends.empty() ? 0 : index.ends.back());
}

void Check(ByteView input) {
  if (input.empty() || input.size() > kMaxInputBytes) return;
  const auto kind = static_cast<JournalInput>(input.front() % kJournalInputs);
  const ByteView rest = input.subspan(1);
  switch (kind) {
    case JournalInput::kRawJournal:
      return CheckJournal(rest);
    case JournalInput::kSealedJournal:
      return CheckJournal(SealJournal(rest));
    case JournalInput::kRawPack:
      return CheckRawPack(rest);
    case JournalInput::kSealedPack:
      return CheckSealedPack(rest);
  }
}

}  // namespace
}  // namespace sandglass::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sandglass::fuzz::Check({data, size});
  return 0;
}
