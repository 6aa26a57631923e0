// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/masked_words.hpp"

#include "support/catch.hpp"

namespace masked_words_test {

using namespace acc::launcher;
using Words = std::vector<std::string>;

TEST_CASE("masked_words: values of arguments that name a secret are hidden, others stay", "[launch]") {
  CHECK(masked_words({"python", "train.py", "--hf-token", "abc", "--lr", "0.1"}) ==
        Words{"python", "train.py", "--hf-token", "***", "--lr", "0.1"});
  CHECK(masked_words({"--API_KEY=abc=", "wandb.key=abc", "-password", "abc", "--name=x=key"}) ==
        Words{"--API_KEY=***", "wandb.key=***", "-password", "***", "--name=x=key"});
  CHECK(masked_words({"--use-secrets", "--epochs", "3", "key.py"}) ==
        Words{"--use-secrets", "--epochs", "3", "key.py"});
  for (const char* flag : {"--passwd", "--pwd", "--auth", "--credential", "--APIKEY"})
    CHECK(masked_words({flag, "abc"}) == Words{flag, "***"});
  CHECK(masked_words({"--token"}) == Words{"--token"});
  CHECK(masked_words({"--token", "-abc"}) == Words{"--token", "***"});
}

TEST_CASE("masked_words: a secret is hidden wherever it stands in an argument", "[launch]") {
  const auto masked = [](const std::string& word) { return masked_words({word}).at(0); };
  CHECK(masked("--env=HF_TOKEN=abc") == "--env=HF_TOKEN=***");
  CHECK(masked("--config=wandb.api_key=a,b") == "--config=wandb.api_key=***");
  CHECK(masked("a=1,token=abc,b=2") == "a=1,token=***,b=2");
  CHECK(masked("token:abc") == "token:***");
  CHECK(masked("HF_TOKEN abc") == "HF_TOKEN ***");
  CHECK(masked(R"({"api_key": "abc", "lr": 1})") == R"({"api_key": "***", "lr": 1})");
  CHECK(masked("https://user:abc@host/path?token=abc") == "https://***@host/path?token=***");
  CHECK(masked("--url=https://host:80/a@b") == "--url=https://host:80/a@b");
}

TEST_CASE("masked_words: what counts tokens is no secret", "[launch]") {
  const Words words = {"--tokenizer", "gpt2", "--max-tokens=4096", "num_tokens=3", "keyboard.py",
                       "a:b",         "x = y"};
  CHECK(masked_words(words) == words);
}

TEST_CASE("masked_value: a setting is hidden by its name, or by those of the pairs in it", "[launch]") {
  CHECK(masked_value("api_token", "abc") == "***");
  CHECK(masked_value("rdzv_conf", "timeout=3,password=a,read=4") == "timeout=3,password=***,read=4");
  CHECK(masked_value("num_processes", 2) == 2);
  CHECK(masked_value("list", Value::parse(R"(["key=1", {"secret": [1], "plain": 2}])")) ==
        Value::parse(R"(["key=***", {"secret": "***", "plain": 2}])"));
}

}  // namespace masked_words_test
