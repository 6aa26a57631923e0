// SPDX-License-Identifier: Apache-2.0
#include "acc/config/edit.hpp"

#include "acc/config/assign.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace edit_test {

using acc::launcher::ConfigValues;
using acc::launcher::edited_config;
using acc::launcher::parse_config;

namespace {

std::string set(const std::string& text, const std::vector<std::string>& assignments,
                const std::string& file = "c.yaml") {
  ConfigValues values = parse_config(text, file).values;
  acc::launcher::assign(values, assignments);
  return edited_config(text, values, file);
}

const std::string kText =
    "# The job of team A\n"
    "distributed_type: FSDP  # sharded\n"
    "\n"
    "# eight of them\n"
    "num_processes: '8'   # all\n"
    "fsdp_config:\n"
    "    # wide\n"
    "    fsdp_version: 2  # the new one\n"
    "    offload_params: no\n"
    "mixed_precision: bf16\n"
    "# the end\n";

}  // namespace

TEST_CASE("edit: a changed value keeps its line's comment, everything else stays", "[config]") {
  CHECK(set(kText, {"num_processes=4", "fsdp_config.fsdp_version=1"}) ==
        "# The job of team A\n"
        "distributed_type: FSDP  # sharded\n"
        "\n"
        "# eight of them\n"
        "num_processes: 4   # all\n"
        "fsdp_config:\n"
        "    # wide\n"
        "    fsdp_version: 1  # the new one\n"
        "    fsdp_offload_params: false\n"
        "mixed_precision: bf16\n"
        "# the end\n");
}

TEST_CASE("edit: keys go and come, new ones last in their mapping", "[config]") {
  CHECK(
      set(kText, {"num_processes=", "mixed_precision=", "debug=yes", "fsdp_config.fsdp_min_num_params=7"}) ==
      "# The job of team A\n"
      "distributed_type: FSDP  # sharded\n"
      "\n"
      "# eight of them\n"
      "fsdp_config:\n"
      "    # wide\n"
      "    fsdp_version: 2  # the new one\n"
      "    fsdp_offload_params: false\n"
      "    fsdp_min_num_params: 7\n"
      "debug: true\n"
      "# the end\n");
}

TEST_CASE("edit: values of several lines are replaced as a whole", "[config]") {
  CHECK(set("distributed_type: XLA\ntpu_vm:\n- a\n- b  # second\ntpu_name: x\n", {"tpu_vm=c"}) ==
        "distributed_type: XLA\ntpu_vm:\n- c\ntpu_name: x\n");
}

TEST_CASE("edit: what cannot be edited by lines is written anew", "[config]") {
  const std::string flow = "{distributed_type: NO, debug: true}  # one line\n";
  CHECK(set(flow, {"debug=no"}) == "debug: false\ndistributed_type: 'NO'\n");
  CHECK(set("distributed_type: FSDP\nfsdp_config: &a {fsdp_version: 2}\n", {"fsdp_config.fsdp_version=1"}) ==
        "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 1\n");
}

TEST_CASE("edit: JSON stays JSON, in its order", "[config]") {
  CHECK(set(R"({"num_processes": 2, "distributed_type": "FSDP", "fsdp_config": {"version": 1}})",
            {"num_processes=4", "debug=true"}, "c.json") ==
        "{\n  \"num_processes\": 4,\n  \"distributed_type\": \"FSDP\",\n  \"fsdp_config\": {\n"
        "    \"fsdp_version\": 1\n  },\n  \"debug\": true\n}\n");
}

TEST_CASE("edit: a text that is not UTF-8 is refused", "[config]") {
  const std::string file = GENERATE("c.yaml", "c.json");
  const std::string text = "{\"distributed_type\": \"MULTI_CPU\", \"num_processes\": 2}\n";
  CHECK(acc::test::error_of([&] { set(text, {"main_process_ip=\xff"}, file); }) ==
        "main_process_ip: is not UTF-8, and cannot be written in a config file");
}

TEST_CASE("edit: a file is changed in place, and made where there is none", "[config]") {
  const acc::test::TemporaryFolder folder;
  const auto file = folder.path() / "c.yaml";
  acc::launcher::edit_config({{"distributed_type", "NO"}}, file);
  CHECK(folder.read("c.yaml") == "distributed_type: 'NO'\n");
  folder.write("c.yaml", "# mine\ndistributed_type: NO\n");
  acc::launcher::edit_config({{"distributed_type", "NO"}, {"debug", true}}, file);
  CHECK(folder.read("c.yaml") == "# mine\ndistributed_type: 'NO'\ndebug: true\n");
}

TEST_CASE("edit: a line stays only if PyYAML reads the same from it as acc", "[config]") {
  // accelerate ends with an AttributeError for a number, reads 010 as 8, and takes any text for true.
  CHECK(set("distributed_type: 'NO'\ngpu_ids: 1  # mine\n", {"gpu_ids=1"}) ==
        "distributed_type: 'NO'\ngpu_ids: '1'  # mine\n");
  CHECK(set("distributed_type: 'NO'\ngpu_ids: 010\n", {"gpu_ids=010"}) ==
        "distributed_type: 'NO'\ngpu_ids: '010'\n");
  CHECK(set("distributed_type: 'NO'\nuse_cpu: \"false\"\n", {"debug=true"}) ==
        "distributed_type: 'NO'\nuse_cpu: false\ndebug: true\n");
  CHECK(set("distributed_type: 'NO'\nnum_processes: 0x2\n", {"debug=true"}) ==
        "distributed_type: 'NO'\nnum_processes: 0x2\ndebug: true\n");
}

TEST_CASE("edit: a text that accelerate itself writes for false stays", "[config]") {
  CHECK(set("distributed_type: 'NO'\ndowncast_bf16: 'no'\n", {"debug=true"}) ==
        "distributed_type: 'NO'\ndowncast_bf16: 'no'\ndebug: true\n");
  CHECK(set("distributed_type: 'NO'\ndowncast_bf16: 'no'\n", {"downcast_bf16=true"}) ==
        "distributed_type: 'NO'\ndowncast_bf16: true\n");
}

TEST_CASE("edit: a key that is null keeps its line until it gets a value", "[config]") {
  const std::string text =
      "distributed_type: FSDP\ngpu_ids: null  # all\nfsdp_config:\n  fsdp_offload_params:  # later\n"
      "  fsdp_version: 2\n";
  CHECK(set(text, {"debug=true"}) == text + "debug: true\n");
  CHECK(set(text, {"gpu_ids="}) == text);
  CHECK(set(text, {"gpu_ids=0"}) ==
        "distributed_type: FSDP\ngpu_ids: '0'  # all\nfsdp_config:\n  fsdp_offload_params:  # later\n"
        "  fsdp_version: 2\n");
  CHECK(set("distributed_type: FSDP\ndebug: true  # a\ndebug: null\n", {"debug=false"}) ==
        "distributed_type: FSDP\ndebug: false  # a\n");
}

TEST_CASE("edit: a text with line breaks at its end keeps the comments", "[config]") {
  CHECK(set("distributed_type: FSDP  # a\n", {"main_training_function=f\n"}) ==
        "distributed_type: FSDP  # a\nmain_training_function: 'f\n\n  '\n");
}

TEST_CASE("edit: quotes within quotes are no comment", "[config]") {
  CHECK(set("distributed_type: 'NO'\nmain_process_ip: 'it''s # x'  # mine\n", {"main_process_ip=a"}) ==
        "distributed_type: 'NO'\nmain_process_ip: a  # mine\n");
  CHECK(set("distributed_type: 'NO'\nmain_process_ip: \"a\\\" # x\"  # mine\n", {"main_process_ip=a"}) ==
        "distributed_type: 'NO'\nmain_process_ip: a  # mine\n");
}

TEST_CASE("edit: the line ends of a file stay, and so does the end of its document", "[config]") {
  CHECK(set("# mine\r\ndistributed_type: 'NO'\r\n", {"debug=true"}) ==
        "# mine\r\ndistributed_type: 'NO'\r\ndebug: true\r\n");
  CHECK(set("---\n# mine\ndistributed_type: 'NO'\n...\n", {"debug=true"}) ==
        "---\n# mine\ndistributed_type: 'NO'\ndebug: true\n...\n");
}

TEST_CASE("edit: says whether a file had to be written without its comments", "[config]") {
  const acc::test::TemporaryFolder folder;
  const auto unchanged = [&](const std::string& text) {
    return acc::launcher::edit_config({{"distributed_type", "NO"}, {"debug", true}},
                                      folder.write("c.yaml", text));
  };
  CHECK(unchanged("# mine\ndistributed_type: NO\n"));
  CHECK(unchanged("{distributed_type: NO, debug: false}\n"));
  CHECK_FALSE(unchanged("{distributed_type: NO, debug: false}  # mine\n"));
  // The comment went with its line.
  CHECK(unchanged("distributed_type: NO\nnum_processes: 2  # two\n"));
}

}  // namespace edit_test
