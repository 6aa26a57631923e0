// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/checksums.hpp"

#include <fstream>
#include <string>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace checksums_test {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

std::string read(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// A folder that three processes have written.
class WrittenFolder {
 public:
  WrittenFolder() {
    write(path() / "model.safetensors", std::string(10'000, 'm'));
    write(path() / "optimizer_0" / "__0_0.distcp", std::string(300, 'o'));
    write(path() / "empty.bin", "");
    write(path() / "random_states_0.pkl", "states");
    for (std::size_t i = 0; i < 3; ++i) acc::write_checksums(path(), {i, 3});
  }
  const fs::path& path() const { return folder_.path(); }

 private:
  acc::test::TemporaryFolder folder_;
};

std::string damage_by_all(const fs::path& folder, std::size_t processes) {
  std::string damage;
  for (std::size_t i = 0; i < processes; ++i) damage += acc::damage_in(folder, {i, processes});
  return damage;
}

TEST_CASE("checksums: what was written is undamaged, for any number of processes that look", "[formats]") {
  const WrittenFolder folder;
  CHECK(damage_by_all(folder.path(), 1).empty());
  CHECK(damage_by_all(folder.path(), 2).empty());
  CHECK(damage_by_all(folder.path(), 7).empty());
}

TEST_CASE("checksums: a file whose name is not UTF-8 is refused by its name", "[formats]") {
  const acc::test::TemporaryFolder folder;
  write(folder.path() / "a\xff", "text");
  CHECK(acc::test::error_of([&] {
          acc::write_checksums(folder.path(), {0, 1});
        }).starts_with("a\\xff: is not UTF-8"));
}

TEST_CASE("checksums: each flipped bit is found, in files and in the lists of checksums", "[formats]") {
  const WrittenFolder folder;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    if (entry.is_directory()) continue;
    const std::string original = read(entry.path());
    for (std::size_t i = 0; i < original.size(); i += 1 + original.size() / 97) {
      std::string flipped = original;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
      write(entry.path(), flipped);
      CAPTURE(entry.path(), i);
      CHECK_THAT(damage_by_all(folder.path(), 2), Contains(entry.path().filename().string()));
    }
    write(entry.path(), original);
  }
  CHECK(damage_by_all(folder.path(), 2).empty());
}

TEST_CASE("checksums: a missing, cut, longer or added file is named", "[formats]") {
  const WrittenFolder folder;
  const fs::path file = folder.path() / "random_states_0.pkl";
  write(file, "state");
  CHECK_THAT(acc::damage_in(folder.path()), EndsWith("random_states_0.pkl: has 5 bytes, and 6 were written"));
  fs::remove(file);
  CHECK_THAT(acc::damage_in(folder.path()), EndsWith("random_states_0.pkl: is missing"));
  write(file, "states");
  write(folder.path() / "scaler.pt", "");
  CHECK_THAT(acc::damage_in(folder.path()), EndsWith("scaler.pt: was not there when the folder was written"));
}

TEST_CASE("checksums: a list that another process is writing is none of the files", "[formats]") {
  const acc::test::TemporaryFolder folder;
  folder.write("a.bin", "a");
  folder.write("b.bin", "b");
  folder.write("checksums_1.json.acc-041df745", "");
  acc::write_checksums(folder.path(), {0, 2});
  std::filesystem::remove(folder.path() / "checksums_1.json.acc-041df745");
  acc::write_checksums(folder.path(), {1, 2});
  CHECK(acc::damage_in(folder.path()).empty());
}

TEST_CASE("checksums: a folder whose list is missing is damaged", "[formats]") {
  const WrittenFolder folder;
  fs::remove(folder.path() / "checksums_1.json");
  CHECK_THAT(acc::damage_in(folder.path()), Contains("checksums_1.json"));
  CHECK_THAT(acc::damage_in(folder.path() / "nothing"), Contains("nothing"));
}

TEST_CASE("checksums: a list of another form is damaged, and said so in plain words", "[formats]") {
  const acc::test::TemporaryFolder folder;
  const fs::path list = folder.path() / "checksums_0.json";
  for (const std::string text :
       {R"({"lists":1})", R"({"lists":-1,"files":{}})", R"({"lists":1,"files":{"a":{}}})",
        R"({"lists":1,"files":{"a":{"bytes":1e300,"xxh3":"0"}}})", "{\"files\xff"}) {
    CAPTURE(text);
    write(list, text);
    write(list, text + "\n" + acc::checksum_of(list) + "\n");
    CHECK(acc::damage_in(folder.path()) == list.string() + ": is damaged");
  }
}

}  // namespace checksums_test
