// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/tpu_config.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace tpu_config_test {

using acc::launcher::ConfigValues;
using acc::launcher::tpu_config_command;
using acc::launcher::TpuConfigRequest;
using acc::test::error_of;

namespace {

std::string remote_text(const TpuConfigRequest& request, const ConfigValues& config = {},
                        const std::optional<std::string>& lines = {}) {
  const auto command = tpu_config_command(request, config, lines);
  return command.at(command.size() - 3);
}

}  // namespace

TEST_CASE("tpu_config: gcloud runs the commands on all machines", "[plan]") {
  CHECK(tpu_config_command({.tpu_name = "t", .tpu_zone = "z", .use_alpha = true, .commands = {"ls", "pwd"}},
                           {}, {}) == std::vector<std::string>{"gcloud", "alpha", "compute", "tpus", "tpu-vm",
                                                               "ssh", "t", "--zone", "z", "--command",
                                                               "cd /usr/share; ls; pwd", "--worker", "all"});
}

TEST_CASE("tpu_config: the config fills in missing options", "[plan]") {
  const ConfigValues config = {
      {"tpu_name", "n"}, {"tpu_zone", "z"}, {"commands", {"a", "b"}}, {"command_file", "c.sh"}};
  CHECK(remote_text({}, config) == "cd /usr/share; a; b");
  CHECK(remote_text({.commands = {"x"}}, config) == "cd /usr/share; x");
  CHECK(remote_text({}, config, "one\n\ntwo\n") == "cd /usr/share; one; two");
  CHECK(acc::launcher::tpu_command_file({}, config) == "c.sh");
  CHECK(acc::launcher::tpu_command_file({.command_file = "d.sh"}, config) == "d.sh");
  CHECK(acc::launcher::tpu_command_file({.commands = {"x"}}, config).empty());
}

TEST_CASE("tpu_config: accelerate is installed in the version asked for", "[plan]") {
  const auto text = [](const std::string& version) {
    return remote_text({.tpu_name = "t",
                        .tpu_zone = "z",
                        .commands = {"ls"},
                        .install_accelerate = true,
                        .accelerate_version = version});
  };
  CHECK(text("latest") == "cd /usr/share; pip install accelerate -U; ls");
  CHECK(text("1.2") == "cd /usr/share; pip install accelerate==1.2; ls");
  CHECK(text("dev") == "cd /usr/share; pip install git+https://github.com/huggingface/accelerate.git; ls");
}

TEST_CASE("tpu_config: missing options are named", "[plan]") {
  CHECK(error_of([] { tpu_config_command({.tpu_name = "t", .tpu_zone = "z"}, {}, {}); }) ==
        "no command is given (--command COMMAND or --command_file FILE)");
  CHECK(error_of([] { tpu_config_command({.commands = {"ls"}}, {}, {}); }) ==
        "the TPU has no name (--tpu_name, or tpu_name in the config file)");
  CHECK(error_of([] { tpu_config_command({.tpu_name = "t", .commands = {"ls"}}, {}, {}); }) ==
        "the TPU has no zone (--tpu_zone, or tpu_zone in the config file)");
}

TEST_CASE("tpu_config: a version of accelerate is one that pip knows", "[plan]") {
  const auto install = [](const std::string& version) {
    return error_of([&] {
      acc::launcher::tpu_config_command({.tpu_name = "t",
                                         .tpu_zone = "z",
                                         .commands = {"ls"},
                                         .install_accelerate = true,
                                         .accelerate_version = version},
                                        {}, std::nullopt);
    });
  };
  for (const char* version : {"1.15.0", "latest", "dev", "1.0rc1", "0.34.2.post1", "1!2.0.dev3+cu13"}) {
    INFO(version);
    CHECK(install(version) == "no error");
  }
  for (const char* version : {"nonsense", "", "1.0; rm -rf /", "1..0"}) {
    INFO(version);
    CHECK(install(version).starts_with("--accelerate_version: '" + std::string(version) +
                                       "' is not a version"));
  }
}

}  // namespace tpu_config_test
