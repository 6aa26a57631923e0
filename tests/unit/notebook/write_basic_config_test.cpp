// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/write_basic_config.hpp"

#include <stdlib.h>

#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/in_child.hpp"
#include "support/printed.hpp"
#include "support/temporary_folder.hpp"

namespace write_basic_config_test {

using namespace acc;
using namespace acc::test;

TEST_CASE("write_basic_config: writes this machine's config as JSON and returns its path", "[notebook]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "new" / "config.json";
  CHECK(write_basic_config("BF16", file) == file);
  const auto config = nlohmann::json::parse(folder.read("new/config.json"));
  CHECK(config["mixed_precision"] == "bf16");
  CHECK(config["compute_environment"] == "LOCAL_MACHINE");
  CHECK(config["distributed_type"] == "NO");
  CHECK(config["num_processes"] == 1);
}

TEST_CASE("write_basic_config: keeps a file that is there, and says so", "[notebook]") {
  const TemporaryFolder folder;
  const auto file = folder.write("config.json", "mine");
  const std::string said = printed_to(stdout, [&] { CHECK_FALSE(write_basic_config("no", file)); });
  CHECK(said == "There is a configuration at " + file.string() + " already; it was kept.\n");
  CHECK(folder.read("config.json") == "mine");
}

TEST_CASE("write_basic_config: a path that cannot be looked at is an Error", "[notebook]") {
  const TemporaryFolder folder;
  CHECK(error_of([&] { write_basic_config("no", folder.path() / std::string(300, 'x')); }).find("xxx") !=
        std::string::npos);
}

TEST_CASE("write_basic_config: the default path is the launcher's", "[notebook]") {
  const TemporaryFolder folder;
  CHECK(in_child([&] {
          ::setenv("HF_HOME", folder.path().c_str(), 1);
          const auto file = folder.path() / "accelerate" / "default_config.json";
          if (write_basic_config() != file) return 10;
          return write_basic_config() ? 11 : 0;
        }) == 0);
}

TEST_CASE("write_basic_config: another precision is refused before anything is written", "[notebook]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "config.json";
  const std::string error = error_of([&] { write_basic_config("fp12", file); });
  CHECK(error.starts_with("mixed_precision: "));
  CHECK(error.find("fp12") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(file));
}

}  // namespace write_basic_config_test
