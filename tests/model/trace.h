// Trace: what a sequence did, line by line, for the report of a failure.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace sandglass::model {

class Trace {
 public:
  // SANDGLASS_MODEL_TRACE in the environment: also print each line at once, which survives a crash.
  Trace() : loud_(std::getenv("SANDGLASS_MODEL_TRACE") != nullptr) {}

  void Add(std::string line) {
    if (loud_) std::fprintf(stderr, "  %s\n", line.c_str());
    lines_.push_back(std::move(line));
  }
  std::string Text() const {
    std::string text;
    for (const std::string& line : lines_) text += "  " + line + "\n";
    return text;
  }

 private:
  const bool loud_;
  std::vector<std::string> lines_;
};

}  // namespace sandglass::model
