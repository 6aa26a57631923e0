# SPDX-License-Identifier: Apache-2.0
"""Makes manifests.json, the JSON Schema of what `acc launch --print-script` writes for Kubernetes.

    pip install kubernetes-validate==1.37.0 kubeflow-trainer-api==2.3.0 && python make_schemas.py > manifests.json

The definitions are those of Kubernetes 1.37 (Apache-2.0, The Kubernetes Authors; from kubernetes-validate) and of JobSet
v1alpha2 (Apache-2.0, The Kubernetes Authors; from kubeflow-trainer-api), without descriptions and without the kinds of
volumes, probes, ... that are not written. Unknown fields are errors.
"""

import json
import pathlib

import kubeflow_trainer_api.models as models
import kubernetes_validate

FOLDER = pathlib.Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema/v1.37.0-local-strict/_definitions.json"
CORE, BATCH, JOBSET = "io.k8s.api.core.v1.", "io.k8s.api.batch.v1.", "io.x-k8s.jobset.v1alpha2."
# Fields that a batch job rarely has, each the root of many definitions.
LEFT_OUT = {CORE + "Volume": {"emptyDir", "configMap", "hostPath", "name", "persistentVolumeClaim", "secret"},
            CORE + "Container": {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"},
            CORE + "PodSpec": {"affinity", "ephemeralContainers", "topologySpreadConstraints"},
            JOBSET + "JobSetSpec": {"volumeClaimPolicies"},
            **{kind: {"status"} for kind in (BATCH + "Job", CORE + "Service", JOBSET + "JobSet")}}


def pruned(schema):
    """Without texts for people and hints for Kubernetes' own tools."""
    if isinstance(schema, list):
        return [pruned(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            kept[key] = {name: pruned(one) for name, one in value.items()}
        elif key not in ("description", "title", "default", "format", "$id", "$schema") and not key.startswith("x-"):
            kept[key] = pruned(value)
    return kept


def of_jobset(schema):
    """With Kubernetes' own definitions by their names there."""
    text = json.dumps(schema).replace("#/$defs/JobsetV1alpha2", "#/$defs/" + JOBSET)
    for prefix in (BATCH, CORE, "io.k8s.apimachinery.pkg.apis.meta.v1."):
        text = text.replace("#/$defs/" + "".join(part[0].upper() + part[1:] for part in prefix.split(".") if part),
                            "#/$defs/" + prefix)
    return json.loads(text)


def reached_from(roots, definitions):
    reached, waiting = {}, list(roots)
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached[name] = definitions[name]
        waiting += [part.split('"')[0] for part in json.dumps(definitions[name]).split('"#/$defs/')[1:]]
    return reached


definitions = pruned(json.loads(FOLDER.read_text()))["$defs"]
jobset = models.JobsetV1alpha2JobSet.model_json_schema(by_alias=True)
for name, schema in {**jobset.pop("$defs"), "JobsetV1alpha2JobSet": jobset}.items():
    if name.startswith("JobsetV1alpha2"):
        schema = {**of_jobset(pruned(schema)), "additionalProperties": False}
        definitions[JOBSET + name.removeprefix("JobsetV1alpha2")] = schema
for name, fields in LEFT_OUT.items():
    properties = definitions[name]["properties"]
    keep = fields if name.endswith("Volume") else set(properties) - fields
    definitions[name]["properties"] = {field: properties[field] for field in properties if field in keep}
definitions[JOBSET + "JobSet"]["properties"].update(apiVersion={"const": "jobset.x-k8s.io/v1alpha2"}, kind={"const": "JobSet"})
definitions[JOBSET + "FailurePolicyRule"]["properties"]["action"]["enum"] = [
    "FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts", "RestartJob", "RestartJobAndIgnoreMaxRestarts"]
kinds = {"Job": BATCH + "Job", "JobSet": JOBSET + "JobSet", "Service": CORE + "Service", "ConfigMap": CORE + "ConfigMap"}
print(json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema",
                  "kinds": {kind: {"$ref": "#/$defs/" + name} for kind, name in kinds.items()},
                  "$defs": reached_from(kinds.values(), definitions)}, sort_keys=True, indent=0).replace("\n", " "))
