// SPDX-License-Identifier: Apache-2.0
// estimate-memory, merge-weights, to-fsdp2, tpu-config and completion from a shell.
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <iterator>
#include <utility>

#include "acc/base/files.hpp"
#include "acc/base/text.hpp"
#include "support/catch.hpp"
#include "support/recordings.hpp"
#include "support/run.hpp"
#include "support/safetensors_files.hpp"
#include "support/temporary_folder.hpp"

namespace commands_test {

using acc::test::Run;
using acc::test::safetensors_text;
using acc::test::TemporaryFolder;

namespace {

Run acc_in(const TemporaryFolder& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "acc");
  return acc::test::run(arguments, acc::test::clean_environment(folder.path().string()), "",
                        folder.path().string());
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("estimate-memory: headers of a folder, or a config.json, are enough", "[cli]") {
  const TemporaryFolder folder;
  folder.write("bert_base/config.json",
               R"({"model_type":"bert","vocab_size":30522,"hidden_size":768,"num_hidden_layers":12,)"
               R"("intermediate_size":3072,"max_position_embeddings":512})");
  const std::string table = acc::test::recording("estimate_bert_base").at("table");
  CHECK(acc_in(folder, {"estimate-memory", "bert_base"}).out == table);
  const Run sharded =
      acc_in(folder, {"estimate-memory", "bert_base", "--dtypes", "float32", "--num-processes", "8"});
  CHECK(sharded.code == 0);
  CHECK_FALSE(contains(sharded.out, "int4"));
  CHECK(contains(sharded.out, "│  ZeRO 3, FULL_SHARD │208.82 MB│   208.82 MB   │\n"));
  CHECK(contains(sharded.out, "up to 147.26 MB of gathered\nparameters more, in 16 bits 73.63 MB:"));
}

TEST_CASE("estimate-memory: a missing model is not downloaded", "[cli]") {
  const TemporaryFolder folder;
  const Run run = acc_in(folder, {"estimate-memory", "bert-base-cased"});
  CHECK(run.code == 2);
  CHECK(contains(run.err, "acc downloads nothing; `hf download bert-base-cased` does"));
  folder.write("empty/x", "");
  CHECK(contains(acc_in(folder, {"estimate-memory", "empty"}).err,
                 "neither safetensors files nor a config.json"));
}

TEST_CASE("merge-weights: shards become one file, and are removed on request", "[cli]") {
  const TemporaryFolder folder;
  folder.write("in/1.safetensors", safetensors_text({{"a", "1"}}));
  folder.write("in/2.safetensors", safetensors_text({{"b", "22"}}));
  CHECK(acc_in(folder, {"merge-weights", "in", "in/out", "--remove_checkpoint_dir"}).code == 2);
  const Run run = acc_in(folder, {"merge-weights", "in", "out", "--remove_checkpoint_dir"});
  CHECK(run.code == 0);
  CHECK(run.out == "out/model.safetensors\n");
  CHECK_FALSE(std::filesystem::exists(folder.path() / "in"));
  CHECK(acc::read_safetensors_header(folder.path() / "out/model.safetensors").tensors.size() == 2);
}

TEST_CASE("merge-weights: the result may have any path, except in a folder that is removed", "[cli]") {
  const TemporaryFolder folder;
  folder.write("in/1.safetensors", safetensors_text({{"a", "1"}}));
  std::filesystem::create_directory(folder.path() / "real");
  std::filesystem::create_directory_symlink("real", folder.path() / "link");
  const std::string absolute = (folder.path() / "absolute").string();
  for (const std::string& name : {std::string("x"), std::string("./y"), std::string("a/x"), absolute,
                                  std::string("two words"), std::string("link")}) {
    INFO(name);
    CHECK(acc_in(folder, {"merge-weights", "in", name}).code == 0);
    CHECK(std::filesystem::exists(folder.path() / name / "model.safetensors"));
  }
  std::filesystem::copy(folder.path() / "in/1.safetensors", folder.path() / "1.safetensors");
  CHECK(acc_in(folder, {"merge-weights", ".", "new", "--remove_checkpoint_dir"}).code == 2);
  CHECK(std::filesystem::exists(folder.path() / "in/1.safetensors"));
}

TEST_CASE("merge-weights: what is not merged is not removed", "[cli]") {
  const TemporaryFolder folder;
  folder.write("in/model.safetensors", safetensors_text({{"a", "1"}}));
  std::filesystem::create_directory_symlink("in", folder.path() / "linked");
  for (const char* name : {"linked", "linked/"}) {
    const Run run = acc_in(folder, {"merge-weights", name, "out", "--remove_checkpoint_dir"});
    CHECK(run.code == 2);
    CHECK(contains(run.err, "is a symbolic link, which --remove_checkpoint_dir does not follow"));
  }
  for (const std::string name :
       {"in/model_1.safetensors", "in/pytorch_model_1.bin", "in/more/b.safetensors"}) {
    const std::filesystem::path other = folder.write(name, safetensors_text({{"b", "1"}}));
    const Run run = acc_in(folder, {"merge-weights", "in", "out", "--remove_checkpoint_dir"});
    CHECK(run.code == 2);
    CHECK(contains(run.err, name + ": is not merged, but --remove_checkpoint_dir would remove it"));
    CHECK_FALSE(std::filesystem::exists(folder.path() / "out"));
    CHECK(std::filesystem::remove(other));
  }
  for (const std::string name : {"in/optimizer.bin", "in/random_states_0.pkl", "in/deep/config.json",
                                 "in/trainer_state.json", "in/tokenizer.pt"}) {
    const std::filesystem::path other = folder.write(name, "state");
    const Run run = acc_in(folder, {"merge-weights", "in", "out", "--remove_checkpoint_dir"});
    CHECK(run.code == 2);
    CHECK(contains(run.err, name + ": is not merged, but --remove_checkpoint_dir would remove it"));
    CHECK(std::filesystem::remove(other));
  }
  for (const char* name : {"config.json", "tokenizer.json", "tokenizer.model", "vocab.txt", "README.md",
                           "model.safetensors.index.json"})
    folder.write(std::string("in/") + name, R"({"weight_map": {"a": "model.safetensors"}})");
  CHECK(acc_in(folder, {"merge-weights", "in", "out", "--remove_checkpoint_dir"}).code == 0);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "in"));
}

TEST_CASE("merge-weights: the folder of a checkpoint of torch.distributed is removed on request", "[cli]") {
  const TemporaryFolder folder;
  const std::filesystem::path from = folder.path() / "pytorch_model_fsdp_0";
  std::filesystem::copy(std::filesystem::path(ACC_TEST_DATA) / "dcp/sharded", from);
  folder.write("pytorch_model_fsdp_0/__9_0.distcp", "");  // of a process without a part
  folder.write("pytorch_model_fsdp_0/scheduler.bin", "state");
  const std::vector<std::string> words = {"merge-weights", from.string(), "out", "--remove_checkpoint_dir"};
  CHECK(contains(acc_in(folder, words).err, "scheduler.bin: is not merged"));
  CHECK(std::filesystem::remove(from / "scheduler.bin"));
  // As of a save by more processes to the same folder.
  folder.write("pytorch_model_fsdp_0/__8_0.distcp", "part");
  CHECK(contains(acc_in(folder, words).err, "__8_0.distcp: is not merged"));
  CHECK(std::filesystem::remove(from / "__8_0.distcp"));
  CHECK(acc_in(folder, words).code == 0);
  CHECK_FALSE(std::filesystem::exists(from));
}

TEST_CASE("merge-weights: a signal ends it, and it leaves the earlier weights and nothing else", "[cli]") {
  const TemporaryFolder folder;
  // More than is written until the signal comes. On the disk it is a hole.
  const std::string bytes = std::to_string(16ULL << 30U);
  const std::string header =
      R"({"w":{"dtype":"U8","shape":[)" + bytes + R"(],"data_offsets":[0,)" + bytes + "]}}";
  const std::string size = {static_cast<char>(header.size()), 0, 0, 0, 0, 0, 0, 0};
  const auto from = folder.write("in/model.safetensors", size + header);
  std::filesystem::resize_file(from, std::filesystem::file_size(from) + (16ULL << 30U));
  folder.write("out/model.safetensors", "earlier");
  // A shell's commands in the background ignore SIGINT, and those under nohup SIGHUP.
  const auto before = std::signal(SIGHUP, SIG_DFL);
  for (const auto& [signal, code] : {std::pair("TERM", "143\n"), std::pair("HUP", "129\n")}) {
    const Run run = acc::test::run(
        {"/bin/sh", "-c",
         "\"$1\" merge-weights in out & while kill -0 $! && ! ls out/.w* >/dev/null 2>&1; do :; done; "
         "kill -$0 $!; wait $!; echo $?",
         signal, (acc::program_folder() / "acc").string()},
        acc::test::clean_environment(folder.path().string()), "", folder.path().string());
    CHECK(run.out == code);
    CHECK(folder.read("out/model.safetensors") == "earlier");
    const std::filesystem::directory_iterator left(folder.path() / "out");
    CHECK(std::distance(begin(left), end(left)) == 1);
  }
  std::signal(SIGHUP, before);
}

TEST_CASE("commands: an empty name of a file or folder is not one that was not given", "[cli]") {
  const TemporaryFolder folder;
  folder.write("in/model.safetensors", safetensors_text({{"a", "1"}}));
  folder.write("model.safetensors", "mine");
  folder.write("job.yaml", "num_processes: 2\n");
  const auto refused = [&](const std::vector<std::string>& words, const std::string& said) {
    INFO(words[0]);
    const Run run = acc_in(folder, words);
    CHECK(run.code == 2);
    CHECK(run.out == "");
    CHECK(run.err == "acc: " + said + "\n");
  };
  refused({"merge-weights", "in", ""}, "output_path: is empty (name a folder)");
  refused({"to-fsdp2", "--config_file", "job.yaml", "--output_file=", "--overwrite"},
          "--output_file: is empty (give it a value)");
  refused({"merge-weights", "", "out"}, "checkpoint_directory: is empty (name a folder)");
  refused({"report", "events.json", "-o", ""}, "--output: is empty (name a file)");
  refused({"report", "", "--json"}, "events: is empty (name a file)");
  refused({"metrics", "--textfile", ""}, "--textfile: is empty (name a file)");
  refused({"compile", "model.py:make", "-o", ""}, "--output: is empty (name a file)");
  refused({"notebook", "install", "--python", ""}, "--python: is empty (name a Python)");
  refused({"config", "--config_file", ""}, "--config_file: is empty (name a file)");
  refused({"config", "--answers", ""}, "--answers: is empty (name a file)");
  refused({"config", "default", "--config_file", ""}, "--config_file: is empty (name a file)");
  refused({"config", "check", ""}, "file: is empty (name a file)");
  refused({"estimate-memory", ""}, "model_name: is empty (name a model)");
  refused({"env", "--config_file", ""}, "--config_file: is empty (name a file)");
  refused({"to-fsdp2", "--config_file", "job.yaml", "--output_file", "", "--overwrite"},
          "--output_file: is empty (name a file)");
  CHECK(folder.read("model.safetensors") == "mine");
  CHECK(folder.read("job.yaml") == "num_processes: 2\n");
}

TEST_CASE("merge-weights: a checkpoint of torch.distributed becomes one file", "[cli]") {
  const TemporaryFolder folder;
  const std::filesystem::path data = std::filesystem::path(ACC_TEST_DATA) / "dcp";
  const Run run = acc_in(folder, {"merge-weights", (data / "sharded").string(), "out"});
  CHECK(run.err == "");
  CHECK(run.out == "out/model.safetensors\n");
  CHECK(acc::read_safetensors_header(folder.path() / "out/model.safetensors").tensors.size() == 6);
}

TEST_CASE("merge-weights: unsupported input is an error with a hint", "[cli]") {
  const TemporaryFolder folder;
  folder.write("dcp/pytorch_model_fsdp_0/.metadata", "x");
  CHECK(contains(acc_in(folder, {"merge-weights", "dcp", "out"}).err,
                 "torch.distributed in pytorch_model_fsdp_0"));
  CHECK(contains(acc_in(folder, {"merge-weights", "dcp/pytorch_model_fsdp_0", "out"}).err,
                 "cannot be read as metadata of torch.distributed.checkpoint"));
  CHECK(contains(acc_in(folder, {"merge-weights", "none", "out"}).err, "none: is not a folder"));
  CHECK(contains(acc_in(folder, {"merge-weights", "dcp", "out", "--unsafe_serialization"}).err,
                 "does not write Python pickles"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "out"));
}

TEST_CASE("compile: what it lacks is one line, and nothing is written", "[cli]") {
  const TemporaryFolder folder;
  const auto error_of = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "compile");
    const Run run = acc_in(folder, words);
    CHECK(run.code != 0);
    CHECK(std::ranges::count(run.err, '\n') == 1);
    return run.err;
  };
  CHECK(contains(error_of({"net:step"}), "--output is required"));
  CHECK(contains(error_of({"net:step", "-o", "net.pt2", "--mixed_precision", "fp16"}), "fp16"));
  CHECK(contains(error_of({"net:step", "-o", "net.pt2", "--python", "none"}), "none"));
  folder.write("torch.py", "raise ImportError\n");
  CHECK(
      contains(error_of({"net:step", "-o", "net.pt2"}), "has no torch (--python PYTHON takes another one)"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "net.pt2"));
}

TEST_CASE("to-fsdp2: writes the output file, and reports dropped keys", "[cli]") {
  const TemporaryFolder folder;
  folder.write("c.yaml",
               "# mine\nfsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n  fsdp_use_orig_params: true\n");
  CHECK(acc_in(folder, {"to-fsdp2", "--config_file", "c.yaml"}).code == 2);
  const Run run = acc_in(folder, {"to-fsdp2", "--config_file", "c.yaml", "--output_file", "d.yaml"});
  CHECK(run.code == 0);
  CHECK(run.err.starts_with("acc: c.yaml: fsdp_use_orig_params in line 4 is left out"));
  CHECK(std::ranges::count(run.err, '\n') == 1);
  const std::string expected =
      "# mine\nfsdp_config:\n  fsdp_reshard_after_forward: true\n  fsdp_version: 2\n";
  CHECK(folder.read("d.yaml") == expected);
  CHECK(contains(acc_in(folder, {"to-fsdp2", "--config_file", "c.yaml", "--output_file", "d.yaml"}).err,
                 "--overwrite"));
  CHECK(acc_in(folder, {"to-fsdp2", "--config_file", "c.yaml", "--overwrite"}).code == 0);
  CHECK(folder.read("c.yaml") == expected);
}

TEST_CASE("to-fsdp2: a missing input is an error", "[cli]") {
  const TemporaryFolder folder;
  folder.write("there.yaml", "");
  for (const std::vector<std::string>& output : {std::vector<std::string>{"--overwrite"},
                                                 {"--output_file", "there.yaml"},
                                                 {"--output_file", "d.yaml"},
                                                 {}}) {
    std::vector<std::string> words = {"to-fsdp2", "--config_file", "missing.yaml"};
    words.insert(words.end(), output.begin(), output.end());
    const Run run = acc_in(folder, words);
    CHECK(run.err.starts_with("acc: missing.yaml: cannot be read: "));
    CHECK(std::ranges::count(run.err, '\n') == 1);
  }
}

TEST_CASE("commands: a pipe without a writer is refused without waiting", "[cli]") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  CHECK(acc_in(folder, {"config", "check", "pipe"}).err == "acc: pipe: is a pipe without a writer\n");
  CHECK(acc_in(folder, {"estimate-memory", "pipe"}).err.starts_with("acc: pipe: cannot be read"));
}

TEST_CASE("tpu-config: --debug prints what accelerate prints", "[cli]") {
  for (const std::string& name : acc::test::recordings("tpuconfig_")) {
    INFO(name);
    const auto recorded = acc::test::recording(name);
    const TemporaryFolder folder;
    folder.write("c.sh", "echo \"one\"\necho two\n");
    std::vector<std::string> arguments = {"tpu-config"};
    if (recorded.at("config_yaml").is_string()) {
      std::string yaml = recorded.at("config_yaml");
      if (const auto at = yaml.find("<CWD>"); at != std::string::npos)
        yaml.replace(at, 5, folder.path().string());
      folder.write("c.yaml", yaml);
      arguments.insert(arguments.end(), {"--config_file", "c.yaml"});
    }
    for (const auto& word : recorded.at("argv")) {
      if (word != "--config_file" && word != "<CONFIG>") arguments.push_back(word);
    }
    const Run run = acc_in(folder, arguments);
    CHECK(run.out == recorded.at("stdout").get<std::string>());
    CHECK(run.code == (recorded.at("error").is_null() ? 0 : 2));
  }
}

TEST_CASE("tpu-config: without --debug gcloud runs, and its exit code is acc's", "[cli]") {
  const TemporaryFolder folder;
  const auto gcloud = folder.write("bin/gcloud", "#!/bin/sh\necho \"$8\"\nexit 7\n");
  std::filesystem::permissions(gcloud, std::filesystem::perms::owner_all);
  acc::Environment environment = acc::test::clean_environment(folder.path().string());
  environment.set("PATH", (folder.path() / "bin").string() + ":" + environment.get("PATH"));
  const Run run = acc::test::run(
      {"acc", "tpu-config", "--tpu_name", "t", "--tpu_zone", "z", "--command", "ls"}, environment);
  CHECK(run.code == 7);
  CHECK(run.out == "--command\n");
}

TEST_CASE("completion: bash completes commands, flags and their values", "[cli]") {
  const TemporaryFolder folder;
  const Run script = acc_in(folder, {"completion", "bash"});
  REQUIRE(script.code == 0);
  folder.write("acc.bash", script.out);
  const auto complete = [&](const std::string& words, int at) {
    // compopt works under a Tab key alone.
    const std::string text = "source ./acc.bash; compopt() { :; }; COMP_WORDS=(" + words +
                             "); COMP_CWORD=" + std::to_string(at) +
                             "; _acc; printf '%s\\n' \"${COMPREPLY[@]}\"";
    const Run run =
        acc::test::run({"/bin/bash", "-c", text}, acc::test::clean_environment(folder.path().string()), "",
                       folder.path().string());
    CHECK(run.err.empty());
    return run.out;
  };
  CHECK(complete("acc la", 1) == "launch\n");
  CHECK(complete("acc launch --num_cpu", 2) == "--num_cpu_threads_per_process\n");
  CHECK(complete("acc launch --mixed_precision fp", 3) == "fp16\nfp8\n");
  CHECK(complete("acc config che", 2) == "check\n");
  CHECK(complete("acc completion z", 2) == "zsh\n");
  CHECK(complete("acc new t", 2) == "training\n");
  CHECK(complete("acc launch acc.b", 2) == "\n");  // files are left to readline
  CHECK(acc_in(folder, {"completion", "ksh"}).code == 2);
}

TEST_CASE("acc: help and version are found under their usual names", "[cli]") {
  const TemporaryFolder folder;
  const std::string help = acc_in(folder, {"--help"}).out;
  CHECK(acc_in(folder, {"help"}).out == help);
  CHECK(acc_in(folder, {"help", "help"}).out == help);
  const std::string launch = acc_in(folder, {"launch", "--help"}).out;
  CHECK(launch.starts_with("usage: acc launch "));
  CHECK(acc_in(folder, {"help", "launch"}).out == launch);
  CHECK(acc_in(folder, {"-h", "launch"}).out == launch);
  CHECK(acc_in(folder, {"help", "config", "set"}).out == acc_in(folder, {"config", "set", "--help"}).out);
  CHECK(acc_in(folder, {"-V"}).out == acc_in(folder, {"--version"}).out);
}

TEST_CASE("acc: a misspelt option is answered with the nearest one", "[cli]") {
  const TemporaryFolder folder;
  for (const auto& [words, meant] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--hlep"}, "--help"},
           {{"ps", "--hlep"}, "--help"},
           {{"config", "set", "--confg_file", "x", "a=b"}, "--config_file"},
           {{"launch", "--hlep"}, "--help"},
           {{"launch", "--nproc", "2", "train.py"}, "--nproc-per-node"}}) {
    const Run run = acc_in(folder, words);
    CAPTURE(run.err);
    CHECK(run.code == 2);
    CHECK(contains(run.err, "did you mean '" + meant + "'?"));
  }
  CHECK(contains(acc_in(folder, {"run"}).err, "as in `acc run train.py --lr 0.1`"));
}

TEST_CASE("acc: output that cannot be written is an error, whatever the command", "[cli]") {
  const TemporaryFolder folder;
  folder.write("c.yaml", "compute_environment: LOCAL_MACHINE\ndistributed_type: 'NO'\n");
  const std::string program = (acc::program_folder() / "acc").string();
  for (const std::string command :
       {"--version", "--help", "launch --help", "env", "config show --config_file c.yaml", "man acc",
        "completion bash", "launch --cpu --dry_run true", "launch --cpu --print-script slurm true",
        "new training project", "test --nodes", "test --nodes --json"}) {
    const Run run =
        acc::test::run({"/bin/sh", "-c", program + " " + command + " > /dev/full"},
                       acc::test::clean_environment(folder.path().string()), "", folder.path().string());
    CAPTURE(command, run.err);
    CHECK(run.code == 1);
    CHECK(contains(run.err, "acc: standard output: "));
  }
  // A closed standard output loses nothing where nothing is written.
  CHECK(acc::test::run({"/bin/sh", "-c", program + " launch --cpu true >&-"},
                       acc::test::clean_environment(folder.path().string()))
            .code == 0);
}

TEST_CASE("acc: a file beyond `ulimit -f` is not written, which is said, and nothing is left", "[cli]") {
#if defined(__SANITIZE_THREAD__)
  SUCCEED("ThreadSanitizer writes a file at the start of each program");
  return;
#endif
  const TemporaryFolder folder;
  const std::string config = "distributed_type: 'NO'\n";
  const auto file = folder.write("c.yaml", config);
  const std::string program = (acc::program_folder() / "acc").string();
  for (const std::string command :
       {"config set --config_file c.yaml num_processes=1", "new training project"}) {
    const Run run =
        acc::test::run({"/bin/sh", "-c", "ulimit -f 0; exec " + program + " " + command},
                       acc::test::clean_environment(folder.path().string()), "", folder.path().string());
    CAPTURE(command, run.err);
    CHECK(run.code == 1);
    CHECK(contains(run.err, "File too large"));
  }
  CHECK(acc::read_file(file) == config);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
    CHECK_FALSE(contains(entry.path().filename().string(), ".acc-"));
}

}  // namespace commands_test
