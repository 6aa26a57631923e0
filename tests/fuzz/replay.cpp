// SPDX-License-Identifier: Apache-2.0
// acc-test-fuzz NAME FOLDER...: gives each file of the folders to the fuzzer of this name, whole and cut
// short at each of some places. Ends with an abort where a promise does not hold, and with 1 if there is no
// such fuzzer, or no file in a folder.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Entry = int (*)(const std::uint8_t*, std::size_t);

struct Fuzzer {
  std::string_view name;
  Entry entry;
};

}  // namespace

#include "fuzzers.inc"

namespace {

constexpr std::size_t kCuts = 64;

void run(Entry entry, const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  const std::size_t step = std::max<std::size_t>(bytes.size() / kCuts, 1);
  std::fprintf(stderr, "%s\n", file.filename().c_str());
  for (std::size_t size = bytes.size() % step; size <= bytes.size(); size += step) {
    // In memory of its own, so that AddressSanitizer sees what is read behind it.
    const std::vector<std::uint8_t> input(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    entry(input.data(), input.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 1;
  const auto* const fuzzer = std::ranges::find(kFuzzers, std::string_view(argv[1]), &Fuzzer::name);
  if (fuzzer == std::end(kFuzzers)) return 1;
  for (int i = 2; i < argc; ++i) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    if (files.empty()) return 1;
    std::ranges::sort(files);
    for (const std::filesystem::path& file : files) run(fuzzer->entry, file);
  }
  return 0;
}
