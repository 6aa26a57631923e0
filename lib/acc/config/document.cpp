// SPDX-License-Identifier: Apache-2.0
#include "acc/config/document.hpp"

namespace acc::launcher {

Value to_value(const DocumentNode& node) {
  switch (node.kind) {
    case DocumentNode::Kind::scalar:
      return node.value;
    case DocumentNode::Kind::list: {
      Value list = Value::array();
      for (const DocumentNode& item : node.items) list.push_back(to_value(item));
      return list;
    }
    case DocumentNode::Kind::mapping: {
      Value mapping = Value::object();
      for (const DocumentNode& item : node.items) mapping[item.key] = to_value(item);
      return mapping;
    }
  }
  return nullptr;
}

}  // namespace acc::launcher
