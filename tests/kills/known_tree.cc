#include "tests/kills/known_tree.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <iterator>
#include <vector>

namespace sandglass::test {
namespace {

constexpr size_t kLongestPath = 1500;
constexpr std::string_view kOddNames[] = {"new\nline", "\xff\xfe no utf8", " space ", "-rf",
                                          "q'\"`$(x)", "back\\slash",      "*?",      "\x01"};

bool IsBelow(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

std::string Pick(const std::set<std::string>& from, Random& random) {
  if (from.empty()) return "";
  return *std::next(from.begin(), static_cast<std::ptrdiff_t>(Below(random, from.size())));
}

std::string Join(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

}  // namespace

KnownTree::KnownTree(const TreeSnapshot& tree) {
  for (const EntrySnapshot& entry : tree.entries()) {
    if (entry.path.empty() || entry.path.size() > kLongestPath) continue;
    if (entry.path == "base.db" || entry.path == kDoneFile || entry.path == "repo" ||
        entry.path == "repo/.git" || IsBelow(entry.path, "repo/.git"))
      continue;
    if (S_ISDIR(entry.mode))
      folders_.insert(entry.path);
    else if (S_ISREG(entry.mode))
      files_.insert(entry.path);
  }
  next_ = tree.entries().size();
}

std::string KnownTree::File(Random& random) const { return Pick(files_, random); }

std::string KnownTree::Folder(Random& random) const {
  return OneIn(random, 8) ? "" : Pick(folders_, random);
}

std::string KnownTree::InnerFolder(Random& random) const { return Pick(folders_, random); }

std::string KnownTree::Any(Random& random) const {
  return folders_.empty() || !OneIn(random, 3) ? File(random) : Pick(folders_, random);
}

std::string KnownTree::Fresh(Random& random) {
  std::string folder = Folder(random);
  if (folder.size() > kLongestPath / 2) folder.clear();
  std::string name = fmt::format("n{}-{}", next_++, Below(random, 10'000));
  if (OneIn(random, 5)) name = std::string(kOddNames[Below(random, std::size(kOddNames))]) + name;
  if (OneIn(random, 40)) name += std::string(250 - name.size(), 'L');
  return Join(folder, name);
}

void KnownTree::Remove(const std::string& path) {
  for (auto* names : {&files_, &folders_}) {
    names->erase(path);
    std::erase_if(*names, [&](const std::string& name) { return IsBelow(name, path); });
  }
}

void KnownTree::Copy(const std::string& from, const std::string& to) {
  for (auto* names : {&files_, &folders_}) {
    std::vector<std::string> copies;
    for (const std::string& name : *names) {
      if (name == from || IsBelow(name, from)) copies.push_back(to + name.substr(from.size()));
    }
    names->insert(copies.begin(), copies.end());
  }
}

}  // namespace sandglass::test
