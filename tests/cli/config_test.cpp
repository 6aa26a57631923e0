// SPDX-License-Identifier: Apache-2.0
// `acc config` and `acc env` from a shell, without a terminal.
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/run.hpp"
#include "support/temporary_folder.hpp"

namespace config_test {

using acc::test::clean_environment;
using acc::test::Run;
using acc::test::TemporaryFolder;

namespace {

const std::string kDefault = "hf/accelerate/default_config.yaml";

// `acc ARGUMENTS` in a folder of its own, where the default config is too.
class Acc {
 public:
  explicit Acc(int gpus = 0) {
    environment.set("HF_HOME", (folder.path() / "hf").string());
    environment.set("LD_LIBRARY_PATH", ACC_FAKE_NVML);
    environment.set("FAKE_NVML_GPUS", std::to_string(gpus));
  }

  Run operator()(std::vector<std::string> arguments, const std::string& input = "") const {
    arguments.insert(arguments.begin(), "acc");
    return acc::test::run(arguments, environment, input, folder.path().string());
  }
  bool has(const std::string& name) const { return std::filesystem::exists(folder.path() / name); }
  std::string path(const std::string& name) const { return (folder.path() / name).string(); }

  TemporaryFolder folder = {};
  acc::Environment environment = clean_environment(folder.path().string());
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("config: default writes a file for this machine once, and keeps what is there", "[cli]") {
  const Acc acc(4);
  Run run = acc({"config", "default", "--mixed_precision", "BF16"});
  CHECK(run.code == 0);
  CHECK(run.out == "The configuration was saved at " + acc.path(kDefault) + "\n");
  const std::string written = acc.folder.read(kDefault);
  CHECK(contains(written, "distributed_type: MULTI_GPU\n"));
  CHECK(contains(written, "mixed_precision: bf16\n"));
  CHECK(contains(written, "num_processes: 4\n"));
  run = acc({"config", "default"});
  CHECK(run.code == 0);
  CHECK(run.out == "The configuration at " + acc.path(kDefault) + " exists already and was kept.\n");
  CHECK(acc.folder.read(kDefault) == written);
  CHECK(acc({"config", "default", "--mixed_precision", "fp32"}).code == 2);
}

TEST_CASE("config: the file's suffix decides between YAML and JSON", "[cli]") {
  const Acc acc;
  CHECK(acc({"config", "default", "--config-file", "new/c.json"}).code == 0);
  CHECK(acc.folder.read("new/c.json").starts_with("{\n  \"compute_environment\": \"LOCAL_MACHINE\",\n"));
}

TEST_CASE("config: the questions can be answered through a pipe", "[cli]") {
  const Acc acc;
  const Run run = acc({"config"}, "\nmulti-CPU\n\n\nno\n\n2\nbf16\n");
  CHECK(run.err.empty());
  CHECK(run.code == 0);
  CHECK(run.out.ends_with("use_cpu: true\n\nThe configuration was saved at " + acc.path(kDefault) + "\n"));
  CHECK(contains(acc.folder.read(kDefault), "distributed_type: MULTI_CPU\n"));
  CHECK(contains(acc.folder.read(kDefault), "num_processes: 2\n"));
  CHECK(acc({"config", "check"}).out == acc.path(kDefault) + ": ok\n");
}

TEST_CASE("config: if the answers end early, the question is named and nothing is written", "[cli]") {
  const Acc acc;
  const Run run = acc({"config", "--config_file", "c.yaml"}, "\n");
  CHECK(run.code == 2);
  CHECK(run.err.ends_with(": Which kind of training?\n"));
  CHECK(std::ranges::count(run.err, '\n') == 1);
  CHECK_FALSE(acc.has("c.yaml"));
}

TEST_CASE("config: check reports all problems with their positions, exit 2", "[cli]") {
  const Acc acc;
  acc.folder.write("c.yaml", "distributed_type: MULTI_GPU\nnum_proceses: 2\nmixed_precision: fp32\n");
  const Run run = acc({"config", "check", "c.yaml"});
  CHECK(run.code == 2);
  CHECK(run.out.empty());
  CHECK(run.err.starts_with("acc: c.yaml:2:1: unknown key 'num_proceses' "));
  CHECK(contains(run.err, "\nacc: c.yaml:3:18: mixed_precision must be "));
  CHECK(std::ranges::count(run.err, '\n') == 2);
  acc.folder.write("d.yaml",
                   "distributed_type: MULTI_GPU\nnum_processes: 3\nnum_machines: 2\n"
                   "main_process_ip: h\n");
  CHECK(acc({"config", "check", "--config_file", "d.yaml"})
            .err.starts_with("acc: d.yaml:2: num_processes 3 cannot be divided "));
  CHECK(acc({"config", "check", "missing.yaml"}).err.starts_with("acc: missing.yaml: cannot be read: "));
}

TEST_CASE("config: without a default file the commands name its path", "[cli]") {
  const Acc acc;
  for (const char* command : {"check", "show", "update"}) {
    const Run run = acc({"config", command});
    CHECK(run.code == 2);
    CHECK(run.err ==
          "acc: " + acc.path(kDefault) +
              ": there is no default config file (create it with `acc config`, or give another with "
              "`--config_file`)\n");
  }
}

TEST_CASE("config: get and set single values", "[cli]") {
  const Acc acc;
  CHECK(acc({"config", "set", "distributed_type=MULTI_CPU", "num_processes=3"}).code == 0);
  CHECK(acc({"config", "get", "num_processes"}).out == "3\n");
  CHECK(acc({"config", "get", "rdzv_backend"}).out == "static\n");
  const Run none = acc({"config", "get", "tpu_name"});
  CHECK(none.code == 1);
  CHECK(none.out.empty());
  const std::string before = acc.folder.read(kDefault);
  const Run wrong = acc({"config", "set", "num_processes=4", "num_machine=2"});
  CHECK(wrong.code == 2);
  CHECK(wrong.err.starts_with("acc: num_machine=2: unknown key 'num_machine' "));
  CHECK(std::ranges::count(wrong.err, '\n') == 1);
  CHECK(acc.folder.read(kDefault) == before);
}

TEST_CASE("config: what several set at once in a new folder is all there", "[cli]") {
  const Acc acc;
  const std::vector<std::string> assignments = {"debug=true", "tpu_name=a", "tpu_zone=b",
                                                "main_training_function=f"};
  {
    std::vector<std::jthread> writers;
    for (const std::string& assignment : assignments)
      writers.emplace_back(
          [&acc, assignment] { acc({"config", "set", "--config_file", "new/c.yaml", assignment}); });
  }
  const std::string written = acc.folder.read("new/c.yaml");
  for (const char* line : {"debug: true\n", "tpu_name: a\n", "tpu_zone: b\n", "main_training_function: f\n"})
    CHECK(contains(written, line));
}

TEST_CASE("config: a wrong KEY=VALUE makes no folder", "[cli]") {
  const Acc acc;
  CHECK(acc({"config", "set", "--config_file", "new/c.yaml", "debgu=true"}).code == 2);
  CHECK(acc({"config", "set", "--config_file", "new/c.yaml", "ec2_instance_type=x"}).code == 2);
  CHECK_FALSE(acc.has("new"));
}

TEST_CASE("config: an invalid KEY=VALUE is reported before the first question", "[cli]") {
  const Acc acc;
  const Run wrong = acc({"config", "--config_file", "c.yaml", "num_machine=2"});
  CHECK(wrong.code == 2);
  CHECK(wrong.out.empty());
  CHECK(wrong.err.starts_with("acc: num_machine=2: unknown key 'num_machine' "));
  CHECK(std::ranges::count(wrong.err, '\n') == 1);
  // The first answer decides which keys exist.
  const std::string sagemaker = "1\n\n\n\n\nrole\n\n\n\n\n\n\n\n";
  CHECK(acc({"config", "--config_file", "c.yaml", "base_job_name=mine"}, sagemaker).code == 0);
  CHECK(contains(acc.folder.read("c.yaml"), "base_job_name: mine\n"));
}

TEST_CASE("config: --yes asks nothing, and applies KEY=VALUE", "[cli]") {
  const Acc acc;
  CHECK(acc({"config", "--yes", "--config_file", "c.yaml", "num_processes=4", "mixed_precision=bf16"}).code ==
        0);
  const std::string written = acc.folder.read("c.yaml");
  CHECK(contains(written, "distributed_type: MULTI_CPU\n"));
  CHECK(contains(written, "num_processes: 4\n"));
  const Run wrong = acc({"config", "-y", "--config_file", "d.yaml", "num_processes=3", "num_machines=2"});
  CHECK(wrong.code == 2);
  CHECK(contains(wrong.err, "num_processes 3 cannot be divided "));
  CHECK_FALSE(acc.has("d.yaml"));
}

TEST_CASE("config: answers may come from a file", "[cli]") {
  const Acc acc;
  acc.folder.write("a.yaml", "distributed_type: multi-CPU\nnum_processes: 2\n");
  CHECK(acc({"config", "--answers", "a.yaml", "--config_file", "c.yaml", "debug=true"}).code == 0);
  CHECK(contains(acc.folder.read("c.yaml"), "debug: true\ndistributed_type: MULTI_CPU\n"));
  acc.folder.write("a.yaml", "distributed_typ: multi-CPU\n");
  const Run wrong = acc({"config", "--answers", "a.yaml", "--config_file", "d.yaml"});
  CHECK(wrong.err.starts_with("acc: a.yaml:1: unknown question 'distributed_typ' "));
  CHECK(std::ranges::count(wrong.err, '\n') == 1);
  CHECK_FALSE(acc.has("d.yaml"));
}

TEST_CASE("config: what check would refuse is not saved, and asked again", "[cli]") {
  const Acc acc(4);
  const auto kept_out = [&](const Run& run, const std::string& reason) {
    INFO(run.out << run.err);
    CHECK(run.code == 2);
    CHECK(contains(run.out + run.err, reason));
    CHECK_FALSE(acc.has("c.yaml"));
  };
  acc.folder.write("a.yaml", "distributed_type: multi-GPU\nnum_processes: 2\ngpu_ids: 0\n");
  const std::string reason = "these answers: gpu_ids names one GPU, and 2 processes are to share it ";
  kept_out(acc({"config", "--answers", "a.yaml", "--config_file", "c.yaml"}), reason);
  kept_out(acc({"config", "--config_file", "c.yaml", "--yes", "rdzv_backend=foo"}),
           "this configuration: 'foo' is not a rendezvous back end");
  // One machine, no checks, no dynamo, DeepSpeed, FSDP or Megatron-LM.
  const std::string answers = "\nmulti-GPU\n\n\n\n\n\n\n2\n0\n\n\n";
  kept_out(acc({"config", "--config_file", "c.yaml"}, answers), reason);
  // No other answer could mend a KEY=VALUE.
  const std::string right = "\nmulti-GPU\n\n\n\n\n\n\n2\n0,1\n\n\n";
  kept_out(acc({"config", "--config_file", "c.yaml", "rdzv_backend=foo"}, right),
           "these answers: 'foo' is not a rendezvous back end");
  CHECK(acc({"config", "--config_file", "c.yaml"}, answers + "\x1b\n\x1b\n0,1\n\n\n").code == 0);
  CHECK(contains(acc.folder.read("c.yaml"), "gpu_ids: 0,1\n"));
}

TEST_CASE("config: text that YAML escapes is read as it was set", "[cli]") {
  const Acc acc;
  const std::string name = GENERATE("/data/My\u00a0Run/hosts", "a\u0085b");
  CHECK(acc({"config", "set", "--config_file", "c.yaml", "main_training_function=" + name}).code == 0);
  CHECK(acc({"config", "get", "--config_file", "c.yaml", "main_training_function"}).out == name + "\n");
  CHECK(acc({"config", "update", "--config_file", "c.yaml"}).code == 0);
}

TEST_CASE("config: check refuses a misspelt key, launch notes it, --strict refuses it", "[cli]") {
  const Acc acc;
  acc.folder.write("c.yaml",
                   "distributed_type: FSDP\nnum_processes: 1\nfsdp_config: {fsdp_versio: 2, mine: 1}\n");
  const std::string misspelt =
      "c.yaml:3:15: 'fsdp_versio' is not a key of fsdp_config (did you mean 'fsdp_version'?)\n";
  const std::string unknown = "c.yaml:3:31: 'mine' is not a key of fsdp_config\n";
  const Run check = acc({"config", "check", "c.yaml"});
  CHECK(check.code == 2);
  CHECK(check.out == "note: " + unknown);
  CHECK(check.err == "acc: " + misspelt);
  CHECK(acc({"config", "check", "--strict", "c.yaml"}).err == "acc: " + misspelt + "acc: " + unknown);
  acc.folder.write("train.py", "");
  const Run dry = acc({"launch", "--dry_run", "--config_file", "c.yaml", "train.py"});
  CHECK(dry.code == 0);
  CHECK(contains(dry.out, "note: " + misspelt));
  CHECK(acc({"launch", "--strict", "--config_file", "c.yaml", "train.py"}).err ==
        "acc: " + misspelt + "acc: " + unknown);
}

TEST_CASE("config: check refuses what a launch with the file would refuse", "[cli]") {
  const Acc acc;
  acc.folder.write("train.py", "");
  acc.folder.write("c.yaml", "distributed_type: MULTI_CPU\nnum_processes: 2\nrdzv_backend: foo\n");
  const std::string refusal = "acc: c.yaml:3: 'foo' is not a rendezvous back end (static, c10d or etcd)\n";
  const Run check = acc({"config", "check", "c.yaml"});
  CHECK(check.code == 2);
  CHECK(check.err == refusal);
  CHECK(acc({"launch", "--config_file", "c.yaml", "train.py"}).err == refusal);
}

TEST_CASE("config: sections that another type has are noted, and --strict refuses them", "[cli]") {
  const Acc acc(2);
  acc.folder.write("train.py", "");
  acc.folder.write("c.yaml",
                   "distributed_type: MULTI_GPU\nnum_processes: 2\nfsdp_config: {fsdp_version: 2}\n");
  const std::string idle = "c.yaml:3: fsdp_config has no effect with distributed_type MULTI_GPU\n";
  CHECK(acc({"config", "check", "c.yaml"}).out == "note: " + idle + "c.yaml: ok\n");
  CHECK(acc({"config", "check", "--strict", "c.yaml"}).err == "acc: " + idle);
  CHECK(acc({"launch", "--strict", "--config_file", "c.yaml", "train.py"}).err == "acc: " + idle);
  CHECK(contains(acc({"launch", "--dry_run", "--config_file", "c.yaml", "train.py"}).out, "note: " + idle));
  // The flag gives the section its effect.
  const Run chosen = acc({"launch", "--dry_run", "--use_fsdp", "--config_file", "c.yaml", "train.py"});
  CHECK(chosen.code == 0);
  CHECK_FALSE(contains(chosen.out, "has no effect"));
}

TEST_CASE("config: check reads one file, and refuses two", "[cli]") {
  const Acc acc;
  for (const char* name : {"c.yaml", "d.yaml"}) acc.folder.write(name, "distributed_type: NO\n");
  CHECK(acc({"config", "check", "d.yaml"}).code == 0);
  CHECK(acc({"config", "check", "--config_file", "c.yaml", "d.yaml"}).code == 2);
  CHECK(acc({"config", "--config_file", "c.yaml", "check", "d.yaml"}).code == 2);
}

TEST_CASE("config: set says that a file was written anew only where it was", "[cli]") {
  const Acc acc;
  acc.folder.write("c.yaml", "distributed_type: NO\nnum_processes: 2 # two\n");
  CHECK(acc({"config", "set", "--config_file", "c.yaml", "num_processes="}).err.empty());
  CHECK(acc.folder.read("c.yaml") == "distributed_type: 'NO'\n");
}

TEST_CASE("config: a default file that is a link to a missing one stops a launch, and `set`", "[cli]") {
  const Acc acc;
  acc.folder.write("train.py", "");
  const auto file = acc.folder.path() / kDefault;
  std::filesystem::create_directories(file.parent_path());
  std::filesystem::create_symlink("missing.yaml", file);
  for (const Run& run : {acc({"launch", "--dry_run", "train.py"}), acc({"config", "set", "debug=true"})}) {
    CHECK(run.code != 0);
    CHECK(contains(run.err, file.string() + ": cannot be read: No such file or directory"));
  }
}

TEST_CASE("launch: gpu_ids that the machine lacks are refused", "[cli]") {
  const Acc acc(4);
  acc.folder.write("train.py", "");
  acc.folder.write("c.yaml", "{distributed_type: NO, gpu_ids: 7}");
  const Run run = acc({"launch", "--config_file", "c.yaml", "train.py"});
  CHECK(run.code == 2);
  CHECK(run.err == "acc: c.yaml:1: this machine has no GPU 7 (it has 4 GPUs, counted from 0)\n");
}

TEST_CASE("config: check shows notes beside errors", "[cli]") {
  const Acc acc;
  acc.folder.write("c.yaml", "distributed_type: NO\nipex_config: {}\ndebug: maybe\ndebug: perhaps\n");
  const Run run = acc({"config", "check", "c.yaml"});
  CHECK(run.code == 2);
  CHECK(run.err == "acc: c.yaml:4:8: debug must be true or false, not 'perhaps'\n");
  CHECK(run.out ==
        "note: c.yaml:4:1: the key 'debug' is in line 3 already; this one is used\n"
        "note: c.yaml:2:1: ipex_config has no effect any more: PyTorch does itself what IPEX did\n");
}

TEST_CASE("config: a file may have any path; missing folders are created", "[cli]") {
  const Acc acc;
  std::filesystem::create_symlink("behind.yaml", acc.folder.path() / "link.yaml");
  const std::string absolute = (acc.folder.path() / "absolute.yaml").string();
  for (const std::string& name :
       {std::string("c.yaml"), std::string("./d.yaml"), std::string("a/c.yaml"), absolute,
        std::string("with a name/of two words.yaml"), std::string("link.yaml")}) {
    INFO(name);
    CHECK(acc({"config", "--yes", "--config_file", name, "num_processes=2"}).code == 0);
    CHECK(acc({"config", "check", name}).out == name + ": ok\n");
  }
  CHECK(std::filesystem::is_symlink(acc.folder.path() / "link.yaml"));
  CHECK(acc.has("behind.yaml"));
}

TEST_CASE("config: update rewrites an old file and reports keys without effect", "[cli]") {
  const Acc acc;
  acc.folder.write("c.yaml", "# mine\ndistributed_type: NO\nfp16: true\nipex_config: {}\n");
  const Run run = acc({"config", "update", "--config_file", "c.yaml"});
  CHECK(run.code == 0);
  CHECK(run.out ==
        "note: c.yaml:4:1: ipex_config has no effect any more: PyTorch does itself what IPEX did\n"
        "The configuration at c.yaml is up to date.\n");
  CHECK(contains(acc.folder.read("c.yaml"), "mixed_precision: fp16\n"));
  CHECK_FALSE(contains(acc.folder.read("c.yaml"), "ipex"));
  // PyYAML, with which accelerate reads the file, takes NO for a truth value.
  CHECK(acc.folder.read("c.yaml").starts_with("# mine\ndistributed_type: 'NO'\n"));
}

TEST_CASE("env: shows versions, devices and the config", "[cli]") {
  const Acc acc(1);
  acc.folder.write("c.yaml", "{distributed_type: NO, gpu_ids: 0}");
  const Run run = acc({"env", "--config_file", "c.yaml"});
  CHECK(run.code == 0);
  CHECK(run.out.starts_with("- `acc` version: "));
  CHECK(contains(run.out, "\n- GPU 0 type: NVIDIA H100 80GB HBM3"));
  CHECK(contains(run.out, "\n- `acc` passed config (c.yaml):\n"));
  CHECK(contains(run.out, "\n\t- gpu_ids: 0\n"));
  CHECK(contains(acc({"env"}).out, "\n- `acc` default config:\n\tNot found\n"));
}

}  // namespace config_test
