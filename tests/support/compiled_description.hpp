// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

namespace acc::test {

/// What acc compile writes of a layer of two inputs and one output, which is trained with integer targets.
inline nlohmann::json compiled_description() {
  return nlohmann::json::parse(R"({
    "format": 1, "checksum": 0, "torch": "2.11.0", "model": "Net", "precision": "bf16", "machine": "x86_64",
    "processor": ["avx2", "fma"], "smallest_batch": 2,
    "inputs": [{"dtype": "float32", "shape": [null, 2]}, {"dtype": "int64", "shape": [null]}],
    "parameters": [["layer.weight", true], ["scale", false]], "buffers": ["count"],
    "layers": {"layer": "Linear"}, "groups": {"slow": ["layer.weight"]},
    "libraries": {"training": {"constants": {"p0": "layer.weight", "p1": "scale", "b2": "count"},
                               "gradients": ["layer.weight"], "checks": ["a label is out of range"]},
                  "evaluation": {"constants": {"p0": "layer.weight"}, "gradients": [], "checks": []}}})");
}

}  // namespace acc::test
