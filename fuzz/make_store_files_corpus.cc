// Writes the seed corpus of store_files_fuzz into a folder: make_store_files_corpus
// fuzz/corpus/store_files
//
// What is right comes from the real encoders, so that a change of format changes the seeds. Names of seeds say what they hold.
#include <fcntl.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/result.h"
#include "fuzz/store_files_input.h"
#include "undo/journal_format.h"
#include "undo/objects_format.h"
#include "undo/pack.h"
#include "undo/state_files.h"

namespace sandglass::fuzz {
namespace {

struct Seed {
  std::string name;
  Bytes content;
};

class Seeds {
 public:
  void Add(std::string name, StoreInput kind, ByteView rest) {
    Bytes content{static_cast<uint8_t>(kind)};
    content.insert(content.end(), rest.begin(), rest.end());
    all_.push_back({std::move(name), std::move(content)});
  }
  void Add(std::string name, StoreInput kind, std::string_view rest) {
    Add(std::move(name), kind, AsBytes(rest));
  }
  const std::vector<Seed>& all() const { return all_; }

 private:
  std::vector<Seed> all_;
};

constexpr undo::ObjectId kFile{2, 7}, kFresh{5, 9};

void AddTexts(Seeds& seeds) {
  seeds.Add("version", StoreInput::kVersion, undo::WriteVersion(1));
  seeds.Add("version_spaces", StoreInput::kVersion, "2 \n\n");
  seeds.Add("version_none", StoreInput::kVersion, "1.4.2");
  seeds.Add("version_large", StoreInput::kVersion, "99999999999");
  seeds.Add("journey", StoreInput::kJourney,
            undo::WriteJourney({.target = 3, .start = 12, .force = undo::Force::kYes}));
  seeds.Add("journey_gentle", StoreInput::kJourney, "0 2 gentle\n");
  seeds.Add("journey_cut", StoreInput::kJourney, "0 2 ");
  seeds.Add("journey_one_number", StoreInput::kJourney, "7");
  seeds.Add("journey_none", StoreInput::kJourney, "x");
  const undo::Record note[] = {
      undo::MetaRecord{
          .object = kFile, .reason = undo::TouchReason::kDirect, .path = "a/b", .meta = {}},
      undo::ContentRecord{.object = kFile, .path = "a/b", .whole = true, .file_size = 7}};
  const Bytes frames = undo::EncodeFrames(note).value();
  seeds.Add("note", StoreInput::kFrames, frames);
  seeds.Add("note_cut", StoreInput::kFrames, ByteView(frames).first(frames.size() - 12));
  seeds.Add("note_without_padding", StoreInput::kFrames,
            ByteView(frames).first(undo::kFrameHeadBytes + 1));
  seeds.Add("note_sealed", StoreInput::kSealedFrames, std::string_view("\3\0abc\1\0", 7));
  const std::string project = undo::WriteStoreOwner({.root = kFile, .path = "/home/a/project"});
  seeds.Add("project", StoreInput::kProject, project);
  seeds.Add("project_salted", StoreInput::kProject,
            undo::WriteStoreOwner({.root = kFile,
                                   .path = "/home/a/project",
                                   .salt = 3,
                                   .file_system = {.uuid = 3, .fsid = 4}}));
  seeds.Add("project_bytes", StoreInput::kProject,
            undo::WriteStoreOwner({.root = kFile, .path = "/home/\xff"}));
  seeds.Add("project_cut", StoreInput::kProject, project.substr(0, 30));
  seeds.Add("project_no_root", StoreInput::kProject, R"({"path":"/a"})");
  seeds.Add("project_short_root", StoreInput::kProject, R"({"root":"12"})");
  seeds.Add("project_odd_root", StoreInput::kProject,
            R"({"root":"0000000000000007000000000000000g","path":1})");
  seeds.Add("keep", StoreInput::kKeepList, undo::WriteKeepList({kFile, kFresh}));
  seeds.Add("keep_cut", StoreInput::kKeepList, undo::WriteKeepList({kFile}).substr(0, 20));
  seeds.Add("keep_odd", StoreInput::kKeepList, std::string(66, 'x'));
}

void AddBarriers(Seeds& seeds) {
  const undo::Barrier some{
      .after = {7}, .at = {1'700'000'000'000'000'000}, .redo_depth = 2, .paths = {"a", "\xff/b"}};
  const undo::Barrier any{.after = {-3}, .at = {1}, .redo_depth = 0, .paths = {}};
  seeds.Add("barriers", StoreInput::kBarriers, undo::WriteBarriers({some, any}));
  std::string flipped = undo::WriteBarriers({some, any});
  flipped[20] ^= 1;
  seeds.Add("barriers_flipped", StoreInput::kBarriers, flipped);
  seeds.Add("barriers_unsealed", StoreInput::kBarriers,
            R"([{"after_step_id":1,"time_ns":2,"redo_depth":0,"paths":["a"]}])");
  seeds.Add("barriers_none", StoreInput::kBarriers, "[]");
  seeds.Add("barriers_object", StoreInput::kBarriers, "{}");
  seeds.Add("barriers_no_json", StoreInput::kBarriers, "[{");
  seeds.Add("barriers_odd", StoreInput::kBarriers,
            R"([1,{"after_step_id":1},{"after_step_id":1,"time_ns":2,"paths":3},)"
            R"({"after_step_id":1,"time_ns":2,"paths":[4,"a",{"base64":"!"}]}])");
}

void AddRegistryEntries(Seeds& seeds) {
  seeds.Add("registry", StoreInput::kRegistryEntry, undo::WriteRegistryEntry({"/a", "/b/c"}));
  seeds.Add("registry_bytes", StoreInput::kRegistryEntry,
            undo::WriteRegistryEntry({"/\xff", "/b"}));
  seeds.Add("registry_no_json", StoreInput::kRegistryEntry, "hello");
  seeds.Add("registry_no_store", StoreInput::kRegistryEntry, R"({"project":"/a"})");
  seeds.Add("registry_relative", StoreInput::kRegistryEntry, R"({"project":"a","store":"/b"})");
  seeds.Add("registry_nul", StoreInput::kRegistryEntry, R"({"project":"/a\u0000","store":"/b"})");
  seeds.Add("registry_number", StoreInput::kRegistryEntry, R"({"project":7,"store":"/b"})");
}

void AddObjects(Seeds& seeds) {
  undo::ObjectsContent content;
  content.signatures[kFile] = {
      12, 1'700'000'000'000'000'000, 1'700'000'000'000'000'001, 0100644, 1000, 1000};
  content.attributes[kFile] = 0x1234;
  content.successors[kFile] = kFresh;
  content.adopted.insert(77);
  const std::string file = undo::EncodeObjects(content);
  std::string unsealed, flipped = file;
  for (size_t at = 0; at < file.size(); at += undo::kObjectEntryBytes)
    unsealed += file.substr(at + 4, undo::kObjectEntryBytes - 4);
  flipped[70] ^= 1;
  std::string other_kind = unsealed;
  other_kind[0] = 9;
  content.signatures[kFresh] = {0, 1, 2, 0040755, 0, 0};
  std::string forgotten = undo::EncodeObjects(content);
  undo::EncodeAttributes(kFile, 0, forgotten);
  seeds.Add("objects", StoreInput::kObjects, file);
  seeds.Add("objects_forgotten", StoreInput::kObjects, forgotten);
  seeds.Add("objects_torn", StoreInput::kObjects, file.substr(0, 150));
  seeds.Add("objects_flipped", StoreInput::kObjects, flipped);
  seeds.Add("objects_sealed", StoreInput::kSealedObjects, unsealed);
  seeds.Add("objects_other_kind", StoreInput::kSealedObjects, other_kind);
}

Fd InMemory(ByteView content) {
  Fd file(::memfd_create("pack", MFD_CLOEXEC));
  CHECK(file.valid() && PWriteFully(file.get(), content, 0).ok());
  return file;
}

Bytes Compressed(const Bytes& raw) {
  const Fd from = InMemory(raw), to = InMemory({});
  CHECK(undo::WriteCompressedPack(from.get(), raw.size(), to.get()).ok());
  return *ReadFully(to.get(), kMaxStoreInputBytes);
}

// `raw_bytes` of one chunk at most, in one frame.
Bytes Unsealed(const Bytes& raw, uint64_t raw_bytes, int frames) {
  constexpr size_t kTail = 40;  // one end and the trailer
  const Bytes file = Compressed(raw);
  ByteWriter out;
  out.Put(raw_bytes);
  for (int i = 0; i < frames; ++i) {
    out.Put(static_cast<uint16_t>(file.size() - kTail));
    out.PutBytes(ByteView(file).first(file.size() - kTail));
  }
  return out.bytes();
}

void AddPacks(Seeds& seeds) {
  const Bytes chunk(undo::kPackChunkBytes, 'a');
  Bytes two = chunk;
  two.insert(two.end(), 100, 'b');
  const Bytes good = Compressed(two);
  Bytes flipped = good, magic = good, many = good;
  flipped[flipped.size() - 40] ^= 1;
  magic.back() ^= 1;
  many[many.size() - 18] = 0xff;  // the number of chunks
  seeds.Add("pack", StoreInput::kPack, good);
  seeds.Add("pack_empty", StoreInput::kPack, Compressed({}));
  seeds.Add("pack_short", StoreInput::kPack, ByteView(good).first(20));
  seeds.Add("pack_flipped_index", StoreInput::kPack, flipped);
  seeds.Add("pack_magic", StoreInput::kPack, magic);
  seeds.Add("pack_many_chunks", StoreInput::kPack, many);
  seeds.Add("pack_sealed", StoreInput::kSealedPack, Unsealed(chunk, 2 * chunk.size(), 2));
  seeds.Add("pack_forged_size", StoreInput::kSealedPack, Unsealed({1, 2, 3}, chunk.size(), 1));
  seeds.Add("pack_forged_count", StoreInput::kSealedPack, Unsealed(chunk, 1, 3));
  ByteWriter
      huge;  // frames longer than any chunk compresses to do not fit an input: an end that lies elsewhere stands for one
  const undo::PackIndex index{.raw_bytes = chunk.size(), .ends = {0}};
  huge.PutBytes(index.Encode());
  seeds.Add("pack_empty_frame", StoreInput::kPack, huge.bytes());
  seeds.Add("pack_raw", StoreInput::kRawPack, std::string("\x03some bytes that repeat"));
  seeds.Add("pack_raw_chunks", StoreInput::kRawPack,
            std::string(1, '\xff') + std::string(2000, 'q'));
}

Status Write(const Seeds& seeds, const char* folder) {
  const Fd dir(::open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const Seed& seed : seeds.all())
    TRY(ReplaceFileAt(dir.get(), seed.name.c_str(), AsText(seed.content)));
  return Ok();
}

}  // namespace
}  // namespace sandglass::fuzz

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_store_files_corpus <folder>\n", stderr);
    return 2;
  }
  sandglass::fuzz::Seeds seeds;
  sandglass::fuzz::AddTexts(seeds);
  sandglass::fuzz::AddBarriers(seeds);
  sandglass::fuzz::AddRegistryEntries(seeds);
  sandglass::fuzz::AddObjects(seeds);
  sandglass::fuzz::AddPacks(seeds);
  const sandglass::Status written = sandglass::fuzz::Write(seeds, argv[1]);
  if (written.ok()) return 0;
  std::fprintf(stderr, "%s\n", written.error().ToString().c_str());
  return 1;
}
