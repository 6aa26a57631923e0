// SPDX-License-Identifier: Apache-2.0
// Random config files: real ones, truncated, mixed and with changed bytes. Each is read, or refused with a
// position; what is read can be written and read again. The same few on every machine; scripts/fuzz finds
// others.
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/config/edit.hpp"
#include "acc/config/write.hpp"
#include "support/catch.hpp"

namespace read_random_test {

namespace {

namespace fs = std::filesystem;

/// The same sequence on every machine.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t limit) { return engine_() % limit; }
  bool one_in(std::size_t times) { return below(times) == 0; }
  const std::string& of(const std::vector<std::string>& texts) { return texts[below(texts.size())]; }

 private:
  std::mt19937_64 engine_;
};

std::vector<std::string> corpus() {
  std::vector<std::string> texts;
  for (const auto& entry : fs::directory_iterator(fs::path(ACC_TEST_DATA) / "config_corpus"))
    texts.push_back(acc::read_file(entry.path()));
  for (const auto& entry : fs::directory_iterator(ACC_SAMPLE_CONFIGS))
    if (entry.path().extension() == ".yaml") texts.push_back(acc::read_file(entry.path()));
  std::ranges::sort(texts);
  return texts;
}

// Texts with a meaning for YAML, JSON or the reader.
const std::vector<std::string> kPieces = {": ",
                                          "\n",
                                          "\n  ",
                                          "- ",
                                          "{",
                                          "}",
                                          "[",
                                          "]",
                                          ",",
                                          "&a ",
                                          "*a",
                                          "<<: *a",
                                          "'",
                                          "\"",
                                          "\\",
                                          "#",
                                          "? ",
                                          "|\n",
                                          ">-\n",
                                          "---\n",
                                          "...",
                                          "!!str ",
                                          "!x ",
                                          "%YAML 1.1\n",
                                          "~",
                                          "no",
                                          "NO",
                                          "0x1f",
                                          "1:30",
                                          "1e5",
                                          "\t",
                                          "\r\n",
                                          "\xc3\xa9",
                                          "\xff",
                                          std::string(1, '\0'),
                                          "\xef\xbb\xbf",
                                          "null",
                                          ".nan",
                                          "fsdp_config:\n  ",
                                          "dynamo_backend: no\n",
                                          "fp16: true\n",
                                          "distributed_type: NO\n",
                                          "99999999999999999999",
                                          "-"};

std::string changed(std::string text, const std::vector<std::string>& all, Dice& dice) {
  for (std::size_t changes = dice.below(6); changes > 0; --changes) {
    const std::size_t offset = dice.below(text.size() + 1);
    switch (dice.below(5)) {
      case 0:
        text.insert(offset, dice.of(kPieces));
        break;
      case 1:
        text.erase(offset, dice.below(12));
        break;
      case 2:
        if (offset < text.size()) text[offset] = static_cast<char>(dice.below(256));
        break;
      case 3:
        text.insert(offset, text.substr(dice.below(text.size() + 1), dice.below(60)));
        break;
      default: {
        const std::string& other = dice.of(all);
        text = text.substr(0, offset) + other.substr(dice.below(other.size() + 1));
      }
    }
  }
  return text;
}

// Every problem is one line with a position in the file.
void check_problems(const acc::Error& error, const std::string& name) {
  for (const acc::Problem& problem : error.problems()) {
    if (!problem.where.starts_with(name)) FAIL("no position: " << to_string(problem));
    if (problem.what.empty()) FAIL("no words: " << to_string(problem));
  }
}

bool check_text(const std::string& text, const std::string& name) {
  acc::launcher::FileConfig config;
  try {
    config = acc::launcher::parse_config(text, name);
  } catch (const acc::Error& error) {
    check_problems(error, name);
    return false;
  }
  // Unknown keys of sections are kept, with any value; all others are written again.
  if (!config.notes.empty()) return true;
  const std::string written = acc::launcher::format_config(config.values, name);
  if (acc::launcher::format_config(acc::launcher::parse_config(written, name).values, name) != written)
    FAIL("differs:\n" << text);
  const std::string edited = acc::launcher::edited_config(text, config.values, name);
  if (acc::launcher::format_config(acc::launcher::parse_config(edited, name).values, name) != written)
    FAIL("edited:\n" << text);
  return true;
}

}  // namespace

TEST_CASE("reader: whatever a file holds, it is read or refused with a position", "[config][random]") {
  constexpr long kFiles = 3'000;
  const std::vector<std::string> texts = corpus();
  REQUIRE(texts.size() > 10);
  Dice dice(20250101);
  long read = 0;
  for (long i = 0; i < kFiles; ++i) {
    const std::string text = changed(dice.of(texts), texts, dice);
    if (check_text(text, dice.one_in(4) ? "c.json" : "c.yaml")) ++read;
  }
  // Neither all nor none: the changes are of the right size.
  CHECK(read > kFiles / 20);
  CHECK(read < kFiles * 19 / 20);
}

}  // namespace read_random_test
