#include "tests/kills/batch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <span>

namespace sandglass::test {
namespace {

constexpr size_t kCrowded = 700;  // names in the project; from here on more is removed than made
constexpr std::string_view kOptional[] = {"rsync", "sqlite3", "setfattr", "python3", "git"};

// $'...' holds any byte; three octal digits cannot run into what follows.
std::string Quoted(std::string_view word) {
  std::string out = "$'";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '\'' || c == '\\')
      out += fmt::format("\\{:03o}", byte);
    else
      out += c;
  }
  return out + "'";
}
// No name is taken for an option.
std::string Path(const std::string& path) { return Quoted("./" + path); }

class Writer {
 public:
  Writer(const TreeSnapshot& tree, Random& random) : tree_(tree), random_(random) {}
  std::string Command();

  // Each returns the words of one command.
  std::string Write() {
    const std::string file = Existing();
    return fmt::format("sh -c 'echo {} >\"$1\"' - {}", random_(), Path(file));
  }
  std::string Append() {
    return fmt::format("sh -c 'echo {} >>\"$1\"' - {}", random_(), Path(tree_.File(random_)));
  }
  std::string Create() {
    const std::string file = New();
    return fmt::format("sh -c 'seq {} >\"$1\"' - {}", Below(random_, 3000), Path(file));
  }
  std::string Move() {
    const std::string from = tree_.Any(random_), to = tree_.Fresh(random_);
    tree_.Copy(from, to);
    tree_.Remove(from);
    return fmt::format("mv -T {} {}", Path(from), Path(to));
  }
  std::string MoveOver() {
    const std::string from = tree_.File(random_), to = tree_.File(random_);
    if (from != to) tree_.Remove(from);
    return fmt::format("mv -fT {} {}", Path(from), Path(to));
  }
  std::string CopyAll() {
    const std::string from = OneIn(random_, 4) ? tree_.Any(random_) : tree_.File(random_);
    const std::string to = tree_.Fresh(random_);
    tree_.Copy(from, to);
    return fmt::format("cp -aT {} {}", Path(from), Path(to));
  }
  std::string CopyOver() {
    return fmt::format("cp {} {}", Path(tree_.File(random_)), Path(tree_.File(random_)));
  }
  std::string RemoveFile() {
    const std::string file = tree_.File(random_);
    tree_.Remove(file);
    return fmt::format("rm {}", Path(file));
  }
  std::string RemoveFolder() {
    const std::string folder = tree_.InnerFolder(random_);
    tree_.Remove(folder);
    return fmt::format("rm -r {}", Path(folder));
  }
  std::string HardLink() {
    const std::string from = tree_.File(random_), to = New();
    return fmt::format("ln {} {}", Path(from), Path(to));
  }
  std::string SymbolicLink() {
    return fmt::format("ln -s {} {}", Quoted(tree_.Any(random_)), Path(tree_.Fresh(random_)));
  }
  std::string Mode() {
    // Whoever is not root must be able to read what is compared afterwards.
    return fmt::format("chmod {:o} {}", 0500 | Below(random_, 07777 + 1), Path(tree_.Any(random_)));
  }
  std::string Time() {
    return fmt::format("touch -d @{}.{:09} {}", Below(random_, 1u << 31),
                       Below(random_, 1'000'000'000), Path(tree_.Any(random_)));
  }
  std::string Truncate() {
    return fmt::format("truncate -s {} {}", Below(random_, 100'000), Path(tree_.File(random_)));
  }
  std::string Overwrite() {
    return fmt::format("dd if=/dev/urandom of={} bs={} count=1 seek={} conv=notrunc",
                       Path(tree_.File(random_)), 1 + Below(random_, 9000), Below(random_, 4));
  }
  std::string Edit() {
    return fmt::format("sed -i -e 's/1/{}/' {}", Below(random_, 1000), Path(tree_.File(random_)));
  }
  std::string Untar() {
    const std::string from = tree_.Any(random_), folder = tree_.Fresh(random_);
    tree_.AddFolder(folder);
    return fmt::format("sh -c 'mkdir \"$2\" && tar c \"$1\" | tar x -C \"$2\"' - {} {}", Path(from),
                       Path(folder));
  }
  std::string Folders() {
    const std::string folder = tree_.Fresh(random_);
    tree_.AddFolder(folder);
    tree_.AddFolder(folder + "/a");
    return fmt::format("mkdir -p {}/a/b", Path(folder));
  }
  std::string Install() {
    const std::string from = tree_.File(random_), to = New();
    return fmt::format("install -m 750 {} {}", Path(from), Path(to));
  }
  std::string SetAttribute() {
    return fmt::format("setfattr -n user.k{} -v v{} {}", Below(random_, 4), random_(),
                       Path(tree_.Any(random_)));
  }
  std::string RemoveAttribute() {
    return fmt::format("setfattr -x user.k{} {}", Below(random_, 4), Path(tree_.Any(random_)));
  }
  std::string Fifo() { return fmt::format("mkfifo {}", Path(tree_.Fresh(random_))); }
  std::string Owner() {
    return fmt::format("chown -h {}:{} {}", Below(random_, 3) * 1000, Below(random_, 3) * 1000,
                       Path(tree_.File(random_)));
  }
  std::string Synchronise() {
    const std::string to = tree_.Fresh(random_);
    tree_.AddFolder(to);
    return fmt::format("rsync -aX --delete {}/ {}/", Path(tree_.InnerFolder(random_)), Path(to));
  }
  std::string Map() {
    return fmt::format(
        "/usr/bin/python3 -c 'import mmap,sys; f=open(sys.argv[1],\"r+b\"); "
        "m=mmap.mmap(f.fileno(),0); "
        "m[len(m)//2:len(m)//2+1]=b\"{}\"; m.close()' {}",
        Below(random_, 10), Path(tree_.File(random_)));
  }
  // For a while, through a descriptor or a mapping: nobody sees these writes, and they may go on when the session is dead.
  std::string WriteOn() {
    const std::string_view how =
        OneIn(random_, 2) ? "os.pwrite(f.fileno(),os.urandom(50),0)" : "m[0:8]=os.urandom(8)";
    return fmt::format(
        "/usr/bin/python3 -c 'import mmap,os,sys,time; f=open(sys.argv[1],\"r+b\"); "
        "m=mmap.mmap(f.fileno(),0); end=time.time()+0.0{}\nwhile time.time()<end: {}' {}",
        2 + Below(random_, 8), how, Path(tree_.File(random_)));
  }
  std::string Script() {
    const std::string file = New();
    return fmt::format(
        "/usr/bin/python3 -c 'import os,sys; p=sys.argv[1]; f=open(p,\"wb\"); "
        "f.write(os.urandom({0})); f.close(); "
        "f=os.open(p,os.O_RDWR); os.pwrite(f,b\"in the middle\",{0}//2); "
        "os.posix_fallocate(f,{0},4096); "
        "os.link(p,p+\".link\"); os.replace(p+\".link\",p+\".moved\")' {1}",
        1 + Below(random_, 50'000), Path(file));
  }
  std::string Database() {
    constexpr std::string_view kStatements[] = {
        "insert into t select value, hex(randomblob(100)) from generate_series(1, 200);",
        "begin; update t set b = hex(randomblob(50)) where a % 7 = 3; insert into t values (1, 2); "
        "commit;",
        "delete from t where a > 100;",
        "vacuum;",
        "pragma journal_mode=wal; insert into t values (5, 6);",
        "pragma journal_mode=delete; create index if not exists i on t (b);"};
    return fmt::format("sqlite3 base.db {}",
                       Quoted(kStatements[Below(random_, std::size(kStatements))]));
  }
  std::string Git() {
    const std::string commit = "git -C repo commit --allow-empty -qam more";
    const std::string commands[] = {"git -C repo add -A",
                                    commit,
                                    commit,
                                    "git -C repo gc -q --prune=now",
                                    fmt::format("git -C repo checkout -q -b b{}", random_()),
                                    "git -C repo checkout -qf HEAD~1",
                                    "git -C repo reset -q --hard",
                                    fmt::format("sh -c 'seq {} >repo/f{} && git -C repo add -A'",
                                                Below(random_, 500), Below(random_, 20)),
                                    "git -C repo checkout -qf main",
                                    "git -C repo stash -q",
                                    "git -C repo clean -qfd",
                                    "git -C repo repack -qad",
                                    "git -C repo pack-refs --all"};
    return commands[Below(random_, std::size(commands))];
  }

 private:
  std::string New() {
    const std::string file = tree_.Fresh(random_);
    tree_.AddFile(file);
    return file;
  }
  std::string Existing() { return OneIn(random_, 10) ? New() : tree_.File(random_); }

  KnownTree tree_;
  Random& random_;
};

struct Kind {
  std::string (Writer::*command)();
  unsigned weight;
};
constexpr Kind kKinds[] = {
    {&Writer::Write, 6},    {&Writer::Append, 5},          {&Writer::Create, 8},
    {&Writer::Move, 8},     {&Writer::MoveOver, 4},        {&Writer::CopyAll, 7},
    {&Writer::CopyOver, 3}, {&Writer::RemoveFile, 6},      {&Writer::RemoveFolder, 2},
    {&Writer::HardLink, 6}, {&Writer::SymbolicLink, 4},    {&Writer::Mode, 6},
    {&Writer::Time, 6},     {&Writer::Truncate, 4},        {&Writer::Overwrite, 6},
    {&Writer::Edit, 6},     {&Writer::Untar, 2},           {&Writer::Folders, 4},
    {&Writer::Install, 3},  {&Writer::SetAttribute, 5},    {&Writer::Fifo, 1},
    {&Writer::Git, 5},      {&Writer::RemoveAttribute, 3}, {&Writer::Database, 3},
    {&Writer::Map, 2},      {&Writer::Script, 2},          {&Writer::Synchronise, 1},
    {&Writer::Owner, 2},    {&Writer::WriteOn, 2},
};
constexpr Kind kThinning[] = {{&Writer::RemoveFile, 1}, {&Writer::RemoveFolder, 3}};

std::string OneOf(Writer& writer, std::span<const Kind> kinds, Random& random) {
  size_t total = 0;
  for (const Kind& kind : kinds) total += kind.weight;
  size_t at = Below(random, total);
  for (const Kind& kind : kinds) {
    if (at < kind.weight) return (writer.*kind.command)();
    at -= kind.weight;
  }
  return "false";
}

std::string Writer::Command() {
  if (tree_.size() > kCrowded && !OneIn(random_, 3)) return OneOf(*this, kThinning, random_);
  return OneOf(*this, kKinds, random_);
}

bool IsInstalled(std::string_view program) {
  return ::access(fmt::format("/usr/bin/{}", program).c_str(), X_OK) == 0;
}

}  // namespace

std::string BatchScript(const BatchSpec& spec, const TreeSnapshot& tree, Random& random) {
  Writer writer(tree, random);
  std::string script =
      "export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e\n"
      "m() { \"$@\" >/dev/null 2>&1 </dev/null && printf '\\002'; }\n";
  for (int left = spec.mutations; left > 0;) {
    // Some at the same time, as a build would.
    const int beside = OneIn(random, 12) ? std::min(4, left) : 1;
    if (beside > 1) script += "(\n";
    for (int i = 0; i < beside; ++i)
      script += "m " + writer.Command() + (beside > 1 ? " &\n" : "\n");
    if (beside > 1) script += "wait )\n";
    left -= beside;
  }
  return script + fmt::format("echo {} >{}\n", spec.number, kDoneFile);
}

std::vector<std::string> MissingPrograms() {
  std::vector<std::string> missing;
  for (const std::string_view program : kOptional) {
    if (!IsInstalled(program)) missing.emplace_back(program);
  }
  return missing;
}

}  // namespace sandglass::test
