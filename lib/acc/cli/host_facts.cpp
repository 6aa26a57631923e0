// SPDX-License-Identifier: Apache-2.0
#include "acc/cli/host_facts.hpp"

#include <algorithm>
#include <fstream>
#include <string_view>

#include "acc/base/engine.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {

std::vector<NumaNode> numa_nodes(const std::filesystem::path& root) {
  std::vector<NumaNode> nodes;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with("node")) continue;
    const auto number = parse_integer(name.substr(4));
    std::ifstream in(entry->path() / "cpulist");
    std::string cpus;
    if (number && std::getline(in, cpus)) nodes.push_back({static_cast<int>(*number), cpus});
  }
  std::ranges::sort(nodes, {}, &NumaNode::number);
  return nodes;
}

std::string scheduler_name(const Environment& environment) {
  const std::string name = engine_name(environment);
  return name.empty() ? "none found" : name;
}

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> result;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    result.push_back(entry->path());
  std::ranges::sort(result);
  return result;
}

}  // namespace

std::vector<fs::path> site_packages(const fs::path& python) {
  std::error_code error;
  std::vector<fs::path> folders;
  // The virtual environment first, then the installation that it is based on.
  for (const fs::path& program : {python, fs::canonical(python, error)}) {
    const fs::path prefix = program.parent_path().parent_path();
    for (const fs::path& versioned : entries(prefix / "lib")) {
      if (!versioned.filename().string().starts_with("python3")) continue;
      for (const char* name : {"site-packages", "dist-packages"}) {
        const fs::path folder = versioned / name;
        if (fs::is_directory(folder, error) && std::ranges::find(folders, folder) == folders.end())
          folders.push_back(folder);
      }
    }
    if (fs::exists(prefix / "pyvenv.cfg", error)) break;
  }
  return folders;
}

std::map<std::string, std::string> installed_packages(const std::vector<fs::path>& folders) {
  constexpr std::string_view kEnd = ".dist-info";
  std::map<std::string, std::string> versions;
  for (const fs::path& folder : folders) {
    for (const fs::path& entry : entries(folder)) {
      const std::string name = entry.filename();
      const std::size_t dash = name.find('-');
      if (!name.ends_with(kEnd) || dash == std::string::npos || dash + kEnd.size() >= name.size()) continue;
      versions.try_emplace(to_lower(name.substr(0, dash)),
                           name.substr(dash + 1, name.size() - dash - 1 - kEnd.size()));
    }
  }
  return versions;
}

std::string libtorch_version(const fs::path& libtorch) {
  for (const char* header :
       {"include/torch/headeronly/version.h", "include/torch/csrc/api/include/torch/version.h"}) {
    std::ifstream in(libtorch / header);
    std::vector<std::string> numbers;
    for (std::string line; numbers.size() < 3 && std::getline(in, line);) {
      for (const std::string_view name : {"_MAJOR ", "_MINOR ", "_PATCH "}) {
        const std::size_t at = line.find(name);
        if (line.starts_with("#define TORCH_VERSION") && at != std::string::npos)
          numbers.emplace_back(trim(std::string_view(line).substr(at + name.size())));
      }
    }
    if (numbers.size() == 3) return join(numbers, ".");
  }
  return "";
}

}  // namespace acc::launcher
