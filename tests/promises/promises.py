"""The promises of postrender, and the tests that hold each: files, functions, or parts of a parametrized one."""

PROMISES = {
    "bytes": (
        "tests/test_cases.py",
        "tests/properties/test_edit.py",
        "tests/properties/test_promises_streams.py",
        "tests/properties/test_split.py",
    ),
    "all or nothing": (
        "tests/unit/test_filter.py::test_nothing_is_written_on_an_error",
        "tests/unit/test_filter.py::test_one_refused_document_holds_back_all",
        "tests/unit/test_edit.py::test_what_is_read_back_must_be_the_input_plus_the_change",
    ),
    "no guessing": ("tests/test_cases.py::test_case", "tests/unit/test_edit.py::test_a_refusal_names_line_and_column"),
    "pure": (
        "tests/unit/test_filter.py::test_a_render_touches_nothing",
        "tests/unit/test_filter.py::test_same_bytes_same_bytes",
    ),
    "hostile input": ("tests/unit/test_hostile.py",),
    "fast": (
        "tests/test_layers.py::test_a_stream_that_cannot_concern_us_loads_next_to_nothing",
        "tests/test_layers.py::test_a_render_loads_no_command_line",
        "tests/unit/test_hostile.py::test_work_grows_with_the_input_only",
    ),
    "the reconciler writes nothing that is not ours, and nothing unread": (
        "tests/properties/test_reconciler.py",
        "tests/unit/test_keeper.py::test_what_somebody_controls_is_left_alone",
        "tests/unit/test_keeper.py::test_what_is_not_marked_is_never_written",
        "tests/unit/test_keeper.py::test_what_has_changed_since_is_not_written",
        "tests/unit/test_keeper.py::test_what_it_was_made_for_must_be_there_and_be_a_name",
    ),
    "the reconciler resets no gang that has a failed member, and none more than ten times an hour": (
        "tests/unit/test_decide.py",
        "tests/unit/test_keeper.py::test_a_pod_that_failed_holds_it_back_until_it_is_gone",
        "tests/unit/test_keeper.py::test_a_gang_that_fails_again_and_again_is_reset_ten_times_an_hour",
    ),
    "the reconciler finishes what it was kept from": (
        "tests/unit/test_keeper.py::test_a_lost_answer_is_counted_and_told_once",
        "tests/unit/test_keeper.py::test_a_write_that_never_came_is_made_later",
        "tests/unit/test_watch.py::test_after_a_fault",
    ),
    "the reconciler says a thing once": (
        "tests/unit/test_keeper.py::test_after_a_restart_the_same_is_not_said_twice",
        "tests/unit/test_reconciler_says.py::test_the_name_is_the_same_for_the_same_and_another_for_anything_else",
    ),
    "the reconciler asks for little": (
        "tests/unit/test_watch.py::test_no_fault_makes_more_than_two_requests_a_second",
        "tests/unit/test_reconciler_api.py",
        "tests/unit/test_queue.py",
    ),
}
