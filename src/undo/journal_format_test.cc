#include "undo/journal_format.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "undo/journal_view.h"

namespace sandglass::undo {
namespace {

JournalHeader SampleHeader() {
  return {.id = {-3},
          .kind = StepKind::kAmbient,
          .order = 9,
          .uid = 77,
          .reverses_uid = 76,
          .opened_ns = 1'700'000'000'000'000'000,
          .boot_id = {1, 2, 3},
          .label = "make"};
}

Bytes Page(const JournalHeader& header) {
  Bytes page(kJournalHeaderBytes);
  EncodeJournalHeader(header, page);
  return page;
}

void AppendFrame(Bytes& journal, const Record& record) {
  ByteWriter payload, frame;
  ASSERT_TRUE(EncodeRecord(record, payload).ok());
  frame.Put(static_cast<uint32_t>(payload.bytes().size()));
  frame.Put(FrameChecksum(payload.bytes()));
  frame.PutBytes(payload.bytes());
  journal.insert(journal.end(), frame.bytes().begin(), frame.bytes().end());
  journal.resize((journal.size() + 7) / 8 * 8);
}

Bytes Journal(const std::vector<Record>& records) {
  Bytes journal = Page(SampleHeader());
  for (const Record& record : records) AppendFrame(journal, record);
  return journal;
}

JournalView Parsed(const Bytes& bytes) {
  auto view = JournalView::Parse(bytes);
  CHECK(view.ok());
  return std::move(*view);
}

Code FailureOf(const Bytes& bytes) {
  const auto view = JournalView::Parse(bytes);
  CHECK(!view.ok());
  return view.error().code();
}

TEST(JournalFormat, AHeaderComesBackWhole) {
  const Bytes page = Page(SampleHeader());
  const auto decoded = DecodeJournalHeader(page);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->header.id, StepId{-3});
  EXPECT_EQ(decoded->header.kind, StepKind::kAmbient);
  EXPECT_EQ(decoded->header.order, 9u);
  EXPECT_EQ(decoded->header.uid, 77u);
  EXPECT_EQ(decoded->header.reverses_uid, 76u);
  EXPECT_EQ(decoded->header.opened_ns, 1'700'000'000'000'000'000);
  EXPECT_EQ(decoded->header.boot_id, SampleHeader().boot_id);
  EXPECT_EQ(decoded->header.label, "make");
  EXPECT_EQ(decoded->heartbeat_ns, decoded->header.opened_ns) << "opening counts as the first beat";
}

TEST(JournalFormat, ALongLabelIsCut) {
  JournalHeader header = SampleHeader();
  header.label = std::string(2 * kMaxLabelBytes, 'x');
  EXPECT_EQ(DecodeJournalHeader(Page(header))->header.label,
            std::string(kMaxLabelBytes - 3, 'x') + "\u2026");
  // Never in the middle of a character, wherever the limit falls.
  for (size_t ahead = 0; ahead < 4; ++ahead) {
    header.label = std::string(ahead, 'x');
    while (header.label.size() <= kMaxLabelBytes) header.label += "\U0001F600";
    const std::string kept = DecodeJournalHeader(Page(header))->header.label;
    EXPECT_LE(kept.size(), kMaxLabelBytes);
    EXPECT_EQ((kept.size() - ahead - 3) % 4, 0u);
    EXPECT_TRUE(kept.ends_with("\u2026"));
  }
}

TEST(JournalFormat, EveryFlippedBitOfTheHeaderIsNoticed) {
  const Bytes good = Page(SampleHeader());
  for (size_t at = 0; at < offsetof(RawJournalHeader, heartbeat_ns); ++at) {
    Bytes bad = good;
    bad[at] ^= 0x10;
    const Code code = FailureOf(bad);
    const bool in_format =
        at >= offsetof(RawJournalHeader, format) && at < offsetof(RawJournalHeader, kind);
    EXPECT_EQ(code, in_format ? Code::kVersion : Code::kCorrupt) << at;
  }
}

TEST(JournalFormat, HeartbeatAndCursorMayChangeWhileTheStepIsOpen) {
  Bytes page = Page(SampleHeader());
  page[offsetof(RawJournalHeader, heartbeat_ns)] ^= 1;
  page[offsetof(RawJournalHeader, cursor)] ^= 1;
  EXPECT_TRUE(DecodeJournalHeader(page).ok());
}

TEST(JournalFormat, AShortFileIsNoJournal) {
  EXPECT_EQ(FailureOf({}), Code::kCorrupt);
  EXPECT_EQ(FailureOf(Bytes(kJournalHeaderBytes - 1)), Code::kCorrupt);
  EXPECT_EQ(FailureOf(Bytes(kJournalHeaderBytes)), Code::kCorrupt);
}

TEST(JournalFormat, RecordsComeBackInOrder) {
  const Bytes bytes =
      Journal({MarkRecord{{1, 2}, "a"}, UnprotectedRecord{"too large"}, CloseRecord{}});
  const JournalView view = Parsed(bytes);
  ASSERT_EQ(view.size(), 3u);
  EXPECT_EQ(std::get<MarkRecord>(*view.At(0)).path, "a");
  EXPECT_EQ(std::get<UnprotectedRecord>(*view.At(1)).why, "too large");
  EXPECT_TRUE(view.Close().ok());
  EXPECT_EQ(view.damaged(), 0u);
  EXPECT_EQ(view.end(), bytes.size());
}

TEST(JournalFormat, UnusedSpaceIsTheEnd) {
  Bytes bytes = Journal({MarkRecord{{1, 2}, "a"}});
  const size_t end = bytes.size();
  bytes.resize(end + 4096);
  const JournalView view = Parsed(bytes);
  EXPECT_EQ(view.size(), 1u);
  EXPECT_EQ(view.end(), end);
  EXPECT_EQ(view.damaged(), 0u);
  EXPECT_EQ(view.Close().error().code(), Code::kCorrupt) << "the step never finished";
}

TEST(JournalFormat, ADamagedRecordIsPassedOver) {
  Bytes bytes = Journal({MarkRecord{{1, 2}, "first"}, MarkRecord{{1, 2}, "second"}, CloseRecord{}});
  bytes[kJournalHeaderBytes + kFrameHeadBytes + 3] ^= 1;
  const JournalView view = Parsed(bytes);
  EXPECT_EQ(view.damaged(), 1u);
  ASSERT_EQ(view.size(), 2u);
  EXPECT_EQ(std::get<MarkRecord>(*view.At(0)).path, "second");
}

TEST(JournalFormat, ALengthBeyondTheEndStopsTheScan) {
  for (const uint32_t length : {uint32_t{4096}, uint32_t{0xffffffff}}) {
    Bytes bytes = Journal({MarkRecord{{1, 2}, "a"}});
    const size_t second = bytes.size();
    AppendFrame(bytes, CloseRecord{});
    std::memcpy(bytes.data() + second, &length, sizeof(length));
    const JournalView view = Parsed(bytes);
    EXPECT_EQ(view.size(), 1u);
    EXPECT_EQ(view.damaged(), 1u);
    EXPECT_EQ(view.end(), second);
  }
}

TEST(JournalFormat, EveryCutLeavesTheWholeRecordsBeforeIt) {
  const Bytes whole = Journal({MarkRecord{{1, 2}, "a"}, MarkRecord{{3, 4}, "b"}});
  const size_t frame = (whole.size() - kJournalHeaderBytes) / 2;
  for (size_t size = kJournalHeaderBytes; size <= whole.size(); ++size) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    const size_t complete = Parsed(cut).size();
    EXPECT_GE(complete, (size - kJournalHeaderBytes) / frame) << size;
    EXPECT_LE(complete, (size - kJournalHeaderBytes + 7) / frame) << "what is cut may be padding";
  }
}

TEST(JournalFormat, FramesStartAtMultiplesOfEight) {
  EXPECT_EQ(FrameBytes(0), 8u);
  EXPECT_EQ(FrameBytes(1), 16u);
  EXPECT_EQ(FrameBytes(8), 16u);
  EXPECT_EQ(FrameBytes(9), 24u);
}

TEST(JournalFormat, FramesComeBackAndNeverReachBehindTheirBytes) {
  const Record records[] = {
      MetaRecord{.object = {1, 2}, .reason = TouchReason::kDirect, .path = "odd name", .meta = {}},
      ContentRecord{.object = {1, 2}, .path = "odd name", .whole = true, .file_size = 3}};
  const Bytes frames = EncodeFrames(records).value();
  const auto decoded = DecodeFrames(frames);
  ASSERT_TRUE(decoded.ok());
  ASSERT_EQ(decoded->size(), 2u);
  EXPECT_EQ(*EncodeFrames(*decoded), frames);
  EXPECT_EQ(DecodeFrame(frames, frames.size() + 8).error().code(), Code::kCorrupt);
  for (size_t size = 0; size < frames.size(); ++size) {
    const Bytes cut(frames.begin(), frames.begin() + static_cast<ptrdiff_t>(size));
    const auto rest = DecodeFrames(cut);
    EXPECT_TRUE(!rest.ok() || rest->size() < 2 || size + 8 > frames.size());
  }
}

}  // namespace
}  // namespace sandglass::undo
