"""The promises of postrender, and the tests that hold each: files, functions, or parts of a parametrized one."""

PROMISES = {
    "bytes": (
        "tests/test_cases.py",
        "tests/properties/test_edit.py",
        "tests/properties/test_promises_streams.py",
        "tests/properties/test_split.py",
        "tests/properties/test_krm.py",
        "tests/properties/test_inflate.py",
    ),
    "all or nothing": (
        "tests/unit/test_filter.py::test_nothing_is_written_on_an_error",
        "tests/unit/test_filter.py::test_one_refused_document_holds_back_all",
        "tests/unit/test_edit.py::test_what_is_read_back_must_be_the_input_plus_the_change",
        "tests/unit/test_folder.py",
        "tests/unit/test_renderers.py::test_what_is_said_of_a_failure",
        "tests/unit/test_argocd.py::test_nothing_is_refused",
        "tests/unit/test_krm.py::test_on_an_error_the_items_come_back_to_the_byte",
    ),
    "no guessing": ("tests/test_cases.py::test_case", "tests/unit/test_edit.py::test_a_refusal_names_line_and_column"),
    "pure": (
        "tests/unit/test_filter.py::test_a_render_touches_nothing",
        "tests/unit/test_filter.py::test_same_bytes_same_bytes",
        "tests/unit/test_renderers.py::test_the_environment_is_what_is_named",
    ),
    "hostile input": (
        "tests/unit/test_hostile.py",
        "tests/unit/test_gitops.py::test_names_are_safe_and_differ",
        "tests/unit/test_renderers.py::test_the_words_for_helm",
        "tests/unit/test_argocd.py::test_paths_that_lead_out",
    ),
    "fast": (
        "tests/test_layers.py::test_a_stream_that_cannot_concern_us_loads_next_to_nothing",
        "tests/test_layers.py::test_a_render_loads_no_command_line",
        "tests/test_layers.py::test_a_render_loads_nothing_of_the_function",
        "tests/unit/test_hostile.py::test_work_grows_with_the_input_only",
    ),
}
