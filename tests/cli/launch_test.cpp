// SPDX-License-Identifier: Apache-2.0
// What `acc launch` says and answers, before and instead of starting anything.
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/run.hpp"
#include "support/temporary_folder.hpp"

using acc::test::clean_environment;
using acc::test::Run;
using acc::test::TemporaryFolder;

namespace {

// `acc ARGUMENTS` in a folder of its own, which is also its HOME.
class Cli {
 public:
  Run operator()(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "acc");
    return acc::test::run(arguments, environment, "", folder.path().string());
  }

  TemporaryFolder folder = {};
  acc::Environment environment = clean_environment(folder.path().string());
};

}  // namespace

TEST_CASE("cli: a wrong flag is one line with the nearest one, exit 2, and nothing starts", "[cli]") {
  const Cli acc;
  acc.folder.write("train.py", "open('started', 'w')\n");
  const Run run = acc({"launch", "--num_procs", "2", "train.py"});
  CHECK(run.code == 2);
  CHECK(run.err == "acc: unrecognized arguments: --num_procs (did you mean '--num_processes'?)\n");
  CHECK(run.out.empty());
  CHECK_FALSE(std::filesystem::exists(acc.folder.path() / "started"));
}

TEST_CASE("cli: a missing program, a folder, a file without permission: one line each, exit 2", "[cli]") {
  const Cli acc;
  acc.folder.write("script", "#!/bin/sh\n");
  std::filesystem::create_directory(acc.folder.path() / "data");
  const auto refusal = [&](const std::string& program) {
    const Run run = acc({"launch", program});
    CHECK(run.code == 2);
    return run.err;
  };
  CHECK(refusal("missing.py") ==
        "acc: missing.py: no such program (paths are relative to the current folder)\n");
  CHECK(refusal("./data") == "acc: ./data: is a directory, not a program\n");
  CHECK(refusal("./script") == "acc: ./script: is not executable (chmod +x ./script)\n");
}

TEST_CASE("cli: a bad config file is all its problems, file:line each, exit 2", "[cli]") {
  const Cli acc;
  acc.folder.write("train.py", "open('started', 'w')\n");
  acc.folder.write("job.yaml", "distributed_type: MULTI_CPU\nnum_proceses: 2\nmixed_precision: fp32\n");
  const Run run = acc({"launch", "--config_file", "job.yaml", "train.py"});
  CHECK(run.code == 2);
  CHECK(run.err.find("job.yaml:2") != std::string::npos);
  CHECK(run.err.find("did you mean 'num_processes'?") != std::string::npos);
  CHECK(run.err.find("job.yaml:3") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(acc.folder.path() / "started"));
}

TEST_CASE("cli: a dry run shows each value with its origin and starts nothing", "[cli]") {
  const Cli acc;
  acc.folder.write("train.py", "open('started', 'w')\n");
  acc.folder.write("job.yaml", "distributed_type: MULTI_CPU\nnum_processes: 2\nmixed_precision: bf16\n");
  const Run run =
      acc({"launch", "--config_file", "job.yaml", "--max-restarts", "1", "--dry_run=json", "train.py"});
  REQUIRE(run.code == 0);
  const auto json = nlohmann::json::parse(run.out);
  CHECK(json["settings"]["num_processes"]["origin"] == "job.yaml:2");
  CHECK(json["settings"]["max_restarts"]["origin"] == "--max-restarts");
  CHECK(json["workers"].size() == 2);
  CHECK(acc({"launch", "--config_file", "job.yaml", "--dry_run", "train.py"}).out.find("job.yaml:3") !=
        std::string::npos);
  CHECK_FALSE(std::filesystem::exists(acc.folder.path() / "started"));
}

TEST_CASE("cli: the default file is read from HF_HOME, but not by torchrun's rules, nor with --cpu",
          "[cli]") {
  const Cli acc;
  Cli with_home;
  with_home.environment.set("HF_HOME", (with_home.folder.path() / "hf").string());
  with_home.folder.write("hf/accelerate/default_config.yaml",
                         "distributed_type: MULTI_CPU\nnum_processes: 3\n");
  with_home.folder.write("train.py", "");
  const auto workers = [&](const std::vector<std::string>& words) {
    return nlohmann::json::parse(with_home(words).out)["workers"].size();
  };
  CHECK(workers({"launch", "--dry_run=json", "train.py"}) == 3);
  CHECK(workers({"launch", "--cpu", "--dry_run=json", "train.py"}) == 1);
  CHECK(workers({"run", "--dry-run=json", "train.py"}) == 1);
}

TEST_CASE("cli: a program runs, its arguments and exit code are its own", "[cli]") {
  const Cli acc;
  const Run run = acc({"launch", "--nproc-per-node", "1", "/bin/sh", "-c",
                       "echo rank $RANK of $WORLD_SIZE \"$1\"; exit 42", "sh", "$HOME"});
  CHECK(run.code == 42);
  CHECK(run.out == "rank 0 of 1 $HOME\n");
  CHECK(acc({"launch", "/bin/true"}).code == 0);
}

TEST_CASE("cli: called torchrun, acc follows torchrun's rules", "[cli]") {
  const Cli acc;
  const auto link = acc.folder.path() / "torchrun";
  const Run where = acc({"launch", "/bin/sh", "-c", "readlink /proc/$PPID/exe"});
  REQUIRE(where.code == 0);
  std::filesystem::create_symlink(where.out.substr(0, where.out.find('\n')), link);
  const Run run = acc::test::run(
      {link.string(), "--standalone", "--nproc=2", "--no-python", "/bin/sh", "-c", "echo $OMP_NUM_THREADS"},
      acc.environment);
  CHECK(run.code == 0);
  CHECK(run.out == "1\n1\n");
}

TEST_CASE("cli: help and version need nothing", "[cli]") {
  const Cli acc;
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--help"},
                                                {"launch", "--help"},
                                                {"run", "-h"},
                                                {"config", "--help"},
                                                {"test", "--help"}}) {
    const Run run = acc(words);
    CHECK(run.code == 0);
    CHECK(run.out.find("acc") != std::string::npos);
    CHECK(run.err.empty());
  }
  CHECK(acc({"--version"}).out.starts_with("acc "));
}

TEST_CASE("cli: an unknown subcommand is one line, exit 2", "[cli]") {
  const Cli acc;
  const Run run = acc({"lunch", "train.py"});
  CHECK(run.code == 2);
  CHECK(run.err.starts_with("acc: "));
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
}

TEST_CASE("cli: acc uses no torch, CUDA or Python library", "[cli]") {
  const Cli acc;
  const Run where = acc({"launch", "/bin/sh", "-c", "ldd $(readlink /proc/$PPID/exe)"});
  REQUIRE(where.code == 0);
  for (const char* library : {"torch", "cuda", "python", "c10"}) {
    INFO(where.out);
    CHECK(where.out.find(library) == std::string::npos);
  }
}
