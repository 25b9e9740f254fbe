"""A stream as the files of a folder: their names, their bytes, their order; and how a source is rendered."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postrender.findings import Refusal
from postrender.hosts import gitops
from postrender.hosts.folder import Refused
from postrender.hosts.gitops import Helm, Misuse
from postrender.manifests import stream as stream_of
from postrender.manifests import tree
from postrender.options import DEFAULTS
from postrender.renderers import Chart, Folder, Kustomization
from tests.properties.documents import documents

SAFE = re.compile(r"[a-z0-9][a-z0-9.-]{0,213}\.yaml")


def config(name, namespace="", kind="ConfigMap", version="v1"):
    written = "".join(f"  {key}: {value}\n" for key, value in (("name", name), ("namespace", namespace)) if value)
    return f"apiVersion: {version}\nkind: {kind}\nmetadata:\n{written}"


def stream(*documents):
    return "---\n".join(documents).encode()


def names(*documents):
    *files, kustomization = gitops.files(stream(*documents))
    found = [file.name for file in files]
    listed = kustomization.data.decode().partition("resources:\n")[2]
    assert listed == "".join(f"- {name}\n" for name in found)
    assert len({name.casefold() for name in [*found, kustomization.name]}) == len(found) + 1
    assert all(SAFE.fullmatch(name) for name in found)
    return found


def test_the_name_says_who_it_is():
    assert names(config("settings", "llm")) == ["configmap-llm-settings.yaml"]
    assert names(config("settings")) == ["configmap-settings.yaml"]
    assert names(config("v1.pods", kind="APIService")) == ["apiservice-v1.pods.yaml"]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ('"../../etc/passwd"', "configmap-etc-passwd.yaml"),
        ('".."', "configmap.yaml"),
        ('"/"', "configmap.yaml"),
        ('"system:Auth:*"', "configmap-system-auth.yaml"),
        ('"a\\0b\\nc"', "configmap-a-b-c.yaml"),
        ('"-rf"', "configmap-rf.yaml"),
        ("größe", "configmap-gr-e.yaml"),
    ],
)
def test_no_name_leads_elsewhere(name, file):
    assert names(config(name)) == [file]


def test_a_long_name_is_cut_and_told_apart():
    one, other = names(config("n" * 5_000), config("n" * 5_001))
    assert one != other
    assert one.startswith("configmap-nnn")


def test_objects_of_one_plain_name_are_told_apart_whatever_their_order():
    documents = [
        config("b-c", "a"),
        config("c", "a-b"),
        config("x", kind="Ingress", version="networking.k8s.io/v1"),
        config("x", kind="Ingress", version="extensions/v1beta1"),
        config("Upper", kind="Role", version="rbac.authorization.k8s.io/v1"),
        config("upper", kind="Role", version="rbac.authorization.k8s.io/v1"),
        config("alone"),
    ]
    found = names(*documents)
    assert sorted(re.sub(r"-[0-9a-f]{10}\.", ".", name) for name in found) == [
        "configmap-a-b-c.yaml",
        "configmap-a-b-c.yaml",
        "configmap-alone.yaml",
        "ingress-x.yaml",
        "ingress-x.yaml",
        "role-upper.yaml",
        "role-upper.yaml",
    ]
    assert "configmap-alone.yaml" in found
    assert sorted(names(*reversed(documents))) == sorted(found)


def test_a_name_that_another_was_given_is_not_given_twice():
    first = names(config("b-c", "a"), config("c", "a-b"))
    taken = first[0].removeprefix("configmap-").removesuffix(".yaml")
    found = names(config("b-c", "a"), config("c", "a-b"), config(taken))
    assert len(set(found)) == 3


def test_no_object_is_called_as_the_kustomization():
    (name,) = names(config('"/"', kind="Kustomization", version="kustomize.toolkit.fluxcd.io/v1"))
    assert re.fullmatch(r"kustomization-[0-9a-f]{10}\.yaml", name)


def test_what_has_no_name_is_numbered():
    one = "apiVersion: v1\nkind: List\nitems: []\n"
    assert names(one, config("a"), one) == ["configmap-a.yaml", "list-1.yaml", "list-2.yaml"]


@given(
    st.lists(
        st.tuples(*[st.sampled_from(["a", "A", "a-b", "b", ".", "/", "é", "a" * 260])] * 3), max_size=8, unique=True
    )
)
def test_names_are_safe_and_differ(identities):
    documents = [config(f'"{name}"', f'"{namespace}"', f'"K{kind}"') for kind, namespace, name in identities]
    assert len(names(*documents)) == len(documents)


ORDERED = [
    "CustomResourceDefinition",
    "Namespace",
    "ServiceAccount",
    "Secret",
    "ConfigMap",
    "ClusterRole",
    "RoleBinding",
]
ORDERED += ["Service", "Deployment", "Job", "ValidatingWebhookConfiguration", "PodGroup", "InferenceService"]


def test_the_order_is_helms_with_podgroups_before_what_nobody_knows():
    documents = [config("x", kind=kind) for kind in reversed(ORDERED)]
    assert names(*documents) == [f"{kind.lower()}-x.yaml" for kind in ORDERED]
    # What nobody knows stays in the order of the stream.
    found = names(config("x", kind="Zebra"), config("x", kind="Ant"), config("a", kind="Zebra"))
    assert found == ["zebra-x.yaml", "ant-x.yaml", "zebra-a.yaml"]


def bytes_of(data):
    *files, _ = gitops.files(data)
    return [file.data for file in files]


LOOKS = [
    "kind: A\nmetadata:\n  name: a\napiVersion: v1\n",
    "apiVersion: v1\nkind: A\nspec: {kind: B, metadata: {name: b}, name: c}\nmetadata: {labels: {name: d}, name: a, namespace: n}\n",
    '? {kind: B, metadata: {name: b}}\n: {kind: B}\n\'kind\': "A"\n"metadata":\n  - name: b\n',
    "'': {kind: B, name: b}\nkind: A\nmetadata: {'': {name: b}, name: a}\n",
    "metadata: name\nkind: [A]\napiVersion: {kind: v1}\n",
    "- {kind: A, metadata: {name: a}}\n",
    "&x kind: A\nmetadata: !!map {name: !!str a}\n",
    "kind: A\nmetadata: {}\n",
    "",
    "# nothing\n",
    "~\n",
    "''\n",
    "text\n",
]


@pytest.mark.parametrize("document", LOOKS)
def test_a_look_at_a_document_finds_what_reading_it_does(document):
    assert tree.identity(document.encode()) == gitops._identity(tree.read(document.encode(), 2))


def test_a_look_at_any_document_finds_what_reading_it_does():
    count = 0
    for case in documents(1, 400):
        for span in stream_of.cut(case.data):
            text = stream_of.document(case.data, span)
            if gitops._borrows(text):
                continue
            try:
                read = gitops._identity(tree.read(text, 2))
            except tree.Unfit:
                continue  # readers disagree about it
            assert tree.identity(text) == read, case.name
            count += 1
    assert count > 350


def test_what_an_alias_or_a_merge_key_says_is_read():
    base = "metadata: &m {namespace: n}\nkind: A\n"
    assert gitops._identity(tree.read(f"x: &x a\n{base}".replace("n}", "n, name: *x}").encode())) == ("", "A", "n", "a")
    found = names(
        "kind: A\nx: &n n\nmetadata: {name: a, namespace: *n}\n",
        "kind: A\nx: &n m\nmetadata: {name: a, namespace: *n}\n",
    )
    assert found == ["a-n-a.yaml", "a-m-a.yaml"]
    *files, _ = gitops.files(b"kind: A\nx: &x {name: a}\nmetadata: {<<: *x, namespace: n}\n", True)
    assert [file.name for file in files] == ["a-n-a.yaml"]


def test_a_source_that_nothing_has_checked_is_read_to_its_end():
    data = b"apiVersion: v1\nkind: A\nmetadata: {name: a}\nspec: [\n"
    assert len(gitops.files(data, True)) == 2
    with pytest.raises(Refusal):
        gitops.files(data)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_file_has_the_bytes_of_its_document(newline):
    first = "# Source: a/b.yaml\n# why\nkind: A  # so\nmetadata: {name: 'a'}\nt: |+\n  x\n\n\n".replace("\n", newline)
    last = '{"kind": "B", "metadata": {"name": "b"}}'
    data = f"\ufeff---{newline}{first}--- {newline}{last}".encode()
    assert bytes_of(data) == [first.encode(), last.encode()]


def test_a_marker_stays_where_what_follows_is_read_by_it():
    data = b"%YAML 1.1\n---\nkind: A\nmetadata: {name: a}\n...\n--- # b\nkind: B\nmetadata: {name: b}\n"
    assert bytes_of(data) == [
        b"%YAML 1.1\n---\nkind: A\nmetadata: {name: a}\n",
        b"--- # b\nkind: B\nmetadata: {name: b}\n",
    ]


def test_comments_are_no_object():
    assert names("# nothing\n", config("a"), "\n", "null\n") == ["configmap-a.yaml"]
    (kustomization,) = gitops.files(b"# nothing\n")
    assert kustomization.data.endswith(b"resources: []\n")


@pytest.mark.parametrize(
    ("document", "line", "message"),
    [
        ("a: 1\n", 4, "the document is no object: it has no kind"),
        ("- a\n", 4, "the document is no object: it has no kind"),
        ("a: [\n", 5, "not valid YAML: "),
        (
            "# a hook\nkind: Job\nmetadata: {generateName: a-}\n",
            5,
            "a Job without a name, which kustomize does not take",
        ),
    ],
)
def test_what_is_no_object_is_refused(document, line, message):
    with pytest.raises(Refusal) as refused:
        gitops.files(f"kind: A\nmetadata: {{name: a}}\n---\n{document}".encode())
    assert refused.value.finding.message.startswith(message)
    assert refused.value.finding.place.line == line


def test_an_object_that_stands_twice_is_refused():
    twice = [config("x", "n", kind="Ingress", version=f"networking.k8s.io/{version}") for version in ("v1", "v1beta1")]
    with pytest.raises(Refused) as refused:
        gitops.files(stream("# Source: c/templates/a.yaml\n" + twice[0], "# Source: c/templates/b.yaml\n" + twice[1]))
    assert str(refused.value) == (
        "line 9 (c/templates/b.yaml): Ingress/n/x: stands twice, first on line 2 (c/templates/a.yaml); remove one of the two"
    )


def test_no_namespace_is_the_one_called_default_to_kustomize():
    with pytest.raises(Refused, match="ConfigMap/default/a: stands twice, first on line 1; "):
        gitops.files(stream(config("a"), config("a", "default")))
    assert len(names(config("a"), config("a", "other"))) == 2


@pytest.fixture
def chart(tmp_path):
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: c\nversion: 0.1.0\n")
    return str(tmp_path)


def test_a_chart(chart):
    helm = Helm("qwen", ("v.yaml",), ("a.b=1,c={x,y}", r"d=1\,2"), ("e=",), "1.34", True)
    options = DEFAULTS._replace(namespace="llm", api_versions=("a/v1", "b/v1/C"))
    assert gitops.request(chart, helm, options) == Chart(
        chart,
        "qwen",
        "llm",
        ("v.yaml",),
        sets=(("a.b", "1"), ("c", "{x,y}"), ("d", r"1\,2")),
        set_strings=(("e", ""),),
        kube_version="1.34",
        api_versions=("a/v1", "b/v1/C"),
        include_crds=True,
        skip_tests=True,
    )


def test_a_packed_chart(tmp_path):
    (tmp_path / "c-0.1.0.tgz").write_bytes(b"")
    assert isinstance(gitops.request(str(tmp_path / "c-0.1.0.tgz"), Helm("a"), DEFAULTS), Chart)


@pytest.mark.parametrize("name", ["kustomization.yaml", "kustomization.yml", "Kustomization"])
def test_a_kustomization(tmp_path, name):
    (tmp_path / name).write_text("")
    assert gitops.request(str(tmp_path), Helm(), DEFAULTS) == Kustomization(str(tmp_path))


def test_a_folder(tmp_path):
    assert gitops.request(str(tmp_path), Helm(), DEFAULTS) == Folder(str(tmp_path))


@pytest.mark.parametrize(
    ("helm", "message"),
    [
        (Helm(), "a chart needs the name of its release; say --release-name NAME"),
        (Helm("a", sets=("b",)), "--set 'b': is no NAME=VALUE; write one, or several with commas between them"),
        (Helm("a", sets=("b=1,,",)), "--set 'b=1,,': is no NAME=VALUE; write one, or several with commas between them"),
        (
            Helm("a", set_strings=("=1",)),
            "--set-string '=1': is no NAME=VALUE; write one, or several with commas between them",
        ),
    ],
)
def test_what_a_chart_does_not_take(chart, helm, message):
    with pytest.raises(Misuse) as misuse:
        gitops.request(chart, helm, DEFAULTS)
    assert str(misuse.value) == message


@pytest.mark.parametrize(
    ("helm", "flag"),
    [
        (Helm("a"), "--release-name"),
        (Helm(values=("a",)), "--values"),
        (Helm(sets=("a=1",)), "--set"),
        (Helm(set_strings=("a=1",)), "--set-string"),
        (Helm(kube_version="1.34"), "--kube-version"),
        (Helm(include_crds=True), "--include-crds"),
    ],
)
def test_what_is_for_charts_alone(tmp_path, helm, flag):
    with pytest.raises(Misuse, match=f"^{flag} is for a chart, and {tmp_path} is none; "):
        gitops.request(str(tmp_path), helm, DEFAULTS)


@pytest.mark.parametrize(
    ("name", "said"), [("missing", "no such file or folder$"), ("file.yaml", "is no chart, kustomization or folder; ")]
)
def test_what_is_no_source(tmp_path, name, said):
    (tmp_path / "file.yaml").write_text("kind: A\n")
    with pytest.raises(Misuse, match=f"^{tmp_path}/{name}: {said}"):
        gitops.request(str(tmp_path / name), Helm(), DEFAULTS)


@pytest.mark.parametrize("value", ["--set", "-f", "; rm -rf /", "$(id)", "a\nb", "a=b", "{x,y}", r"a\,b", ""])
def test_a_value_is_data_whatever_it_looks_like(value):
    assert gitops._pairs("--set", [f"n={value},m=1", "k=2"]) == (("n", value), ("m", "1"), ("k", "2"))
