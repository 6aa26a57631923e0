// SPDX-License-Identifier: Apache-2.0
#include "acc/config/read.hpp"

#include <algorithm>
#include <string>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/recordings.hpp"
#include "support/temporary_folder.hpp"

namespace read_test {

using acc::launcher::FileConfig;
using acc::launcher::parse_config;
using acc::launcher::read_config;
using acc::launcher::Value;
using acc::test::error_of;

namespace {

std::string error_in(const std::string& text, const std::string& file = "c.yaml") {
  return error_of([&] { parse_config(text, file); });
}

}  // namespace

TEST_CASE("read: values have the types of their settings, and their lines", "[config]") {
  const FileConfig config = parse_config(
      "# job\ndistributed_type: NO\nnum_processes: '1'\ngpu_ids: 0\nmain_process_ip:\n", "c.yaml");
  CHECK(config.values ==
        acc::launcher::ConfigValues{{"distributed_type", "NO"}, {"gpu_ids", "0"}, {"num_processes", 1}});
  CHECK(config.positions.at("distributed_type") == 2);
  CHECK(config.positions.at("gpu_ids") == 4);
  CHECK(config.notes.empty());
}

TEST_CASE("read: by accelerate's rules a file may name any number of processes", "[config]") {
  const std::string text = "distributed_type: NO\nnum_processes: 0\n";
  CHECK(error_in(text) == "c.yaml:2:16: num_processes must be at least 1, not 0");
  const FileConfig config = parse_config(text, "c.yaml", acc::launcher::FileRules::accelerate);
  CHECK(config.values.at("num_processes") == 0);
}

TEST_CASE("read: all problems of a file are reported together, with positions", "[config]") {
  CHECK(error_in("distributed_type: multi_gpu\nnum_proceses: 2\ndebug: maybe\n") ==
        "c.yaml:1:19: distributed_type must be one of NO, MULTI_CPU, MULTI_GPU, MULTI_XPU, MULTI_HPU, "
        "MULTI_NPU, MULTI_MLU, MULTI_SDAA, MULTI_MUSA, MULTI_NEURON, DEEPSPEED, FSDP, MEGATRON_LM, XLA, "
        "not 'multi_gpu' (did you mean 'MULTI_GPU'?)\n"
        "c.yaml:2:1: unknown key 'num_proceses' (did you mean 'num_processes'?)\n"
        "c.yaml:3:8: debug must be true or false, not 'maybe'");
}

TEST_CASE("read: of equal keys the last one counts, with a note, in sections and in JSON too", "[config]") {
  const FileConfig yaml = parse_config(
      "distributed_type: FSDP\nnum_processes: 2\nfsdp_config: {fsdp_version: 1, fsdp_version: 2}\n"
      "num_processes: 4\nnum_processes: 8\n",
      "c.yaml");
  CHECK(yaml.values.at("num_processes") == 8);
  CHECK(yaml.positions.at("num_processes") == 5);
  CHECK(yaml.values.at("fsdp_config") == Value{{"fsdp_version", 2}});
  CHECK(error_of([&] { acc::launcher::refuse_notes(yaml); }) ==
        "c.yaml:4:1: the key 'num_processes' is in line 2 already; this one is used\n"
        "c.yaml:5:1: the key 'num_processes' is in line 4 already; this one is used\n"
        "c.yaml:3:32: the key 'fsdp_version' is in line 3 already; this one is used");
  const FileConfig json =
      parse_config(R"({"distributed_type": "NO", "debug": true, "debug": false})", "c.json");
  CHECK(json.values.at("debug") == false);
  CHECK(json.notes.size() == 1);
}

TEST_CASE("read: a report has the problems and notes of a file, and separately misspelt keys", "[config]") {
  const acc::test::TemporaryFolder folder;
  const auto file = folder.write("c.yaml",
                                 "distributed_type: FSDP\nipex_config: {}\nnum_processes: two\n"
                                 "fsdp_config: {fsdp_versio: 2, mine: 1}\n");
  const acc::launcher::ConfigReport report = acc::launcher::inspect_config(file);
  REQUIRE(report.problems.size() == 1);
  CHECK(report.problems[0].what == "num_processes must be a whole number, not 'two'");
  REQUIRE(report.config.notes.size() == 2);
  CHECK(report.config.notes[1].what == "'mine' is not a key of fsdp_config");
  REQUIRE(report.misspelt.size() == 1);
  CHECK(report.misspelt[0].hint == "did you mean 'fsdp_version'?");
}

TEST_CASE("read: DeepSpeed's `auto` is accepted for numbers that it can determine", "[config]") {
  const auto read = [](const std::string& key) {
    return parse_config("distributed_type: DEEPSPEED\ndeepspeed_config: {" + key + ": auto}\n", "c.yaml")
        .values.at("deepspeed_config");
  };
  CHECK(read("gradient_accumulation_steps") == Value{{"gradient_accumulation_steps", "auto"}});
  CHECK(read("gradient_clipping") == Value{{"gradient_clipping", "auto"}});
  CHECK(error_of([&] { read("zero_stage"); }).ends_with("zero_stage must be a whole number, not 'auto'"));
}

TEST_CASE("read: distributed_type is required, and a misspelt one is reported once", "[config]") {
  CHECK(error_in("num_processes: 1") ==
        "c.yaml: distributed_type is missing (as in `distributed_type: MULTI_GPU`)");
  CHECK(error_in("distributed_typ: NO") ==
        "c.yaml:1:1: unknown key 'distributed_typ' (did you mean 'distributed_type'?)");
}

TEST_CASE("read: a file that is not a mapping is refused", "[config]") {
  const std::string hint = " (`acc config` writes a config file)";
  CHECK(error_in("") == "c.yaml: is empty" + hint);
  CHECK(error_in("# only a comment\n") == "c.yaml: is empty" + hint);
  CHECK(error_in("", "c.json") == "c.json: is empty" + hint);
  CHECK(error_in("- a\n- b\n") == "c.yaml: has no `key: value` lines at its top level" + hint);
  CHECK(error_in("just text") == "c.yaml: has no `key: value` lines at its top level" + hint);
}

TEST_CASE("read: a file that cannot be read is named", "[config]") {
  const acc::test::TemporaryFolder folder;
  const auto missing = folder.path() / "missing.yaml";
  CHECK(error_of([&] { read_config(missing); }) ==
        missing.string() + ": cannot be read: No such file or directory");
  CHECK(error_of([&] { read_config(folder.path()); }) ==
        folder.path().string() + ": cannot be read: Is a directory");
  const auto large = folder.write("large.yaml", std::string(10U << 20U, '['));
  CHECK(error_of([&] { read_config(large); }) == large.string() + ": is larger than 131072 bytes");
}

TEST_CASE("read: files of older versions are read", "[config]") {
  const FileConfig config =
      parse_config("distributed_type: NO\nfp16: true\ndynamo_backend: EAGER\nipex_config: {}\n", "c.yaml");
  CHECK(config.values.at("mixed_precision") == "fp16");
  CHECK(config.positions.at("mixed_precision") == 2);
  CHECK(config.values.at("dynamo_config") == Value{{"dynamo_backend", "EAGER"}});
  CHECK(config.positions.at("dynamo_config") == 3);
  CHECK(config.notes.size() == 1);
}

TEST_CASE("read: an unknown key of a section is noted with the nearest one", "[config]") {
  const FileConfig config = parse_config(
      "distributed_type: FSDP\nfsdp_config:\n  fsdp_ofload_params: true\n  version: 2\n", "c.yaml");
  REQUIRE(config.notes.size() == 1);
  CHECK(acc::to_string(config.notes[0]) ==
        "c.yaml:3:3: 'fsdp_ofload_params' is not a key of fsdp_config (did you mean 'fsdp_offload_params'?)");
  CHECK(error_of([&] { acc::launcher::refuse_notes(config); }) == acc::to_string(config.notes[0]));
  CHECK(config.values.at("fsdp_config").at("fsdp_version") == 2);
  CHECK(config.positions.at("fsdp_config.fsdp_version") == 4);
  CHECK(config.order ==
        std::vector<std::string>{"distributed_type", "fsdp_config", "fsdp_config.fsdp_version"});
}

TEST_CASE("read: long lists of problems and long values are truncated", "[config]") {
  std::string text = "distributed_type: " + std::string(1000, 'x') + "\n";
  for (int i = 0; i < 30; ++i) text += "key" + std::to_string(i) + ": 1\n";
  const std::string error = error_in(text);
  CHECK(std::count(error.begin(), error.end(), '\n') == 20);
  CHECK(error.find(std::string(81, 'x')) == std::string::npos);
  CHECK(error.ends_with("c.yaml: and 11 more like these"));
}

TEST_CASE("read: two names of a setting must have the same value", "[config]") {
  const std::string text = "distributed_type: FSDP\nfsdp_config: {version: 1, fsdp_version: ";
  CHECK(error_in(text + "1}") == "no error");
  CHECK(error_in(text + "2}") == "c.yaml:2:27: fsdp_version has another value in line 2");
}

TEST_CASE("read: what accelerate refuses is refused here with a reason", "[config]") {
  const std::string name = GENERATE("launch_err_bad_distributed_type", "launch_err_compute_environment",
                                    "launch_err_empty_config", "launch_err_mixed_precision_value",
                                    "launch_err_no_distributed_type", "launch_err_num_processes_text",
                                    "launch_err_sagemaker_missing_fields", "launch_err_tpu_spelling");
  INFO(name);
  CHECK(error_in(acc::test::recording(name).at("config_yaml")).starts_with("c.yaml"));
}

TEST_CASE("read: files that accelerate misreads are read as intended", "[config]") {
  const auto read = [](const std::string& name) {
    return parse_config(acc::test::recording(name).at("config_yaml").get<std::string>(), "c.yaml").values;
  };
  CHECK(read("launch_err_gpu_ids_int").at("gpu_ids") == "0");
  CHECK(read("launch_err_yaml_bool_precision").at("mixed_precision") == "no");
  CHECK_FALSE(read("launch_err_ipex_config").contains("ipex_config"));
  CHECK(read("launch_err_sagemaker_type_no").at("distributed_type") == "NO");
}

TEST_CASE("read: every file that accelerate's questionnaire writes is read", "[config]") {
  for (const std::string& name : acc::test::recordings("config_")) {
    const auto yaml = acc::test::recording(name).at("yaml");
    if (yaml.is_null()) continue;
    INFO(name);
    CHECK(error_in(yaml.get<std::string>()) == "no error");
  }
}

TEST_CASE("read: the sample configs are valid", "[config]") {
  int samples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ACC_SAMPLE_CONFIGS)) {
    if (entry.path().extension() != ".yaml") continue;
    INFO(entry.path());
    CHECK(error_of([&] { CHECK(read_config(entry.path()).notes.empty()); }) == "no error");
    ++samples;
  }
  CHECK(samples >= 5);
}

}  // namespace read_test
