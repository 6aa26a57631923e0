// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace acc::test {

/// A recording of accelerate 1.15 from tests/data/accelerate.
inline nlohmann::json recording(const std::string& name) {
  const std::filesystem::path file = std::filesystem::path(ACC_TEST_DATA) / "accelerate" / (name + ".json");
  std::ifstream in(file);
  if (!in) throw std::runtime_error("no recording " + file.string());
  return nlohmann::json::parse(in);
}

/// The names of all recordings with this prefix, sorted.
inline std::vector<std::string> recordings(std::string_view prefix) {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(ACC_TEST_DATA) / "accelerate")) {
    const std::string name = entry.path().stem();
    if (name.starts_with(prefix)) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace acc::test
