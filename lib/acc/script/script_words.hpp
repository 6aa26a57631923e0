// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace acc::launcher {

/// The word as bash reads it, on one line: `--lr`, `'a b'`, `$'two\nlines'`.
std::string bash_word(std::string_view word);

/// The words as one command of bash.
std::string bash_command(const std::vector<std::string>& words);

/// The text as a double-quoted scalar of YAML 1.1 and 1.2, on one line. Throws Error{usage} if it is not
/// UTF-8.
std::string yaml_text(std::string_view text);

/// The same for `command`, `args` and `env` of a container, where Kubernetes expands `$(NAME)`.
std::string kubernetes_text(std::string_view text);

/// A name from `text` that is a DNS label, of at most 40 characters, and begins with a letter.
std::string dns_label(std::string_view text);

}  // namespace acc::launcher
