//! The table of hostile servers. Each row is a test of its own, in a process of its own:
//! `case: what is done => what must come of it`, under the way the server is reached.

use toolyard_core::ErrorKind::{Failed, Lost, Timeout, Unavailable};

use crate::{
    case::{
        Act::{Call, Calls, CancelThenCall, Connect, LargeCall},
        Case,
        Expected::{Answered, Anything, Dropped, Fails, FailsOrLate, Good, Heavy, NoConnection, Quarantined},
        play,
    },
    house::Way,
};

macro_rules! hostile {
    ($($way:ident: $variant:ident { $($case:ident: $act:expr => $expected:expr;)* })*) => {
        $(mod $way {
            use super::*;

            $(#[test]
            fn $case() {
                play(&Case { way: Way::$variant, name: &stringify!($case).replace("_", "-"), act: $act, expected: $expected });
            })*
        })*
    };
}

hostile! {
    stdio: Stdio {
        // How it lives and dies.
        exit_at_start: Connect => NoConnection("ended (exit code 3)");
        signal_at_start: Connect => NoConnection("signal 9");
        hang_at_start: Connect => NoConnection("did not answer within 2 s");
        closes_stdout_at_start: Connect => NoConnection("closed its standard output");
        exit_at_discover: Connect => NoConnection("ended (exit code 7)");
        exit_after_discover: Connect => NoConnection("ended (exit code 5)");
        exit_at_list: Connect => NoConnection("ended (exit code 7)");
        exit_after_list: Connect => Anything;
        exit_at_call: Call => Fails(Lost, "ended (exit code 7)");
        exit_at_calls: Calls => Fails(Lost, "");
        signal_at_call: Call => Fails(Lost, "signal 9");
        exit_after_call: Call => Answered;
        hang_at_discover: Connect => NoConnection("did not answer within 2 s");
        hang_at_list: Connect => NoConnection("did not answer");
        hang_at_call: Calls => Fails(Timeout, "silent for 1 s");
        ignores_call: Call => Fails(Timeout, "silent for 1 s");
        closes_stdout_at_call: Call => Fails(Lost, "closed its standard output");
        half_a_line_at_discover: Connect => NoConnection("ended (exit code 0)");
        half_a_line_at_call: Call => Fails(Lost, "ended (exit code 0)");
        no_line_end_at_call: Call => Answered;
        refuses_to_die: Call => Good;
        forks_children: Call => Good;
        stdin_never_read: LargeCall => Fails(Timeout, "silent for 1 s");
        ping_flood_unread: LargeCall => Fails(Timeout, "silent for 1 s");

        // What it writes.
        line_300mb: Connect => NoConnection("longer than 16777216 bytes");
        brackets_300mb: Connect => NoConnection("message");
        huge_result: Calls => Fails(Lost, "longer than 16777216 bytes");
        noise_300mb: Connect => Anything;
        endless_noise_line: Connect => Anything;
        noise_of_empty_lines: Connect => Anything;
        json_noise: Connect => Anything;
        garbage_before: Call => Good;
        garbage_at_discover: Call => Good;
        garbage_at_list: Call => Good;
        garbage_at_call: Calls => Good;
        garbage_after_call: Call => Good;
        carriage_returns: Call => Good;
        blank_lines: Call => Good;
        byte_order_mark: Call => Good;
        answer_in_two_lines: Call => Good;
        answers_before_requests: Call => Good;
        stderr_flood: Calls => Good;
        stderr_flood_line: Calls => Good;
        stderr_escapes: Call => Good;
        slow_drip: Call => Fails(Timeout, "silent for 1 s");
        invalid_utf8: Call => Fails(Timeout, "silent for 1 s");
        half_a_character: Call => Fails(Timeout, "silent for 1 s");
        nul_byte: Call => Fails(Timeout, "silent for 1 s");
        raw_control: Call => Fails(Timeout, "silent for 1 s");

        // Who is answered.
        wrong_id: Call => Fails(Timeout, "silent for 1 s");
        next_id: Call => Fails(Timeout, "silent for 1 s");
        string_id: Call => Fails(Timeout, "silent for 1 s");
        float_id: Call => Fails(Timeout, "silent for 1 s");
        exponent_id: Call => Fails(Timeout, "silent for 1 s");
        negative_id: Call => Fails(Timeout, "silent for 1 s");
        huge_id: Call => Fails(Timeout, "silent for 1 s");
        null_id: Call => Fails(Timeout, "silent for 1 s");
        object_id: Call => Fails(Timeout, "silent for 1 s");
        no_id: Call => Fails(Timeout, "silent for 1 s");
        duplicate_id_keys: Call => Fails(Timeout, "silent for 1 s");
        duplicate_result_keys: Call => Fails(Timeout, "silent for 1 s");
        neither_result_nor_error: Call => Fails(Timeout, "silent for 1 s");
        duplicate_answers: Calls => Good;
        late_first_answer: CancelThenCall => Good;
        late_answer: Call => Fails(Timeout, "silent for 1 s");

        // What is answered.
        deep_result: Call => Fails(Lost, "nested more than 128 levels deep");
        deep_content: Calls => Fails(Lost, "nested more than 128 levels deep");
        error_deep: Call => Fails(Lost, "nested more than 128 levels deep");
        result_and_error: Call => Fails(Failed, "no (code 1)");
        error_text: Call => Fails(Failed, "no");
        error_list: Call => Fails(Failed, "[1,2,3]");
        error_wrong_fields: Call => Fails(Failed, "code 0");
        error_10mb: Call => FailsOrLate(Failed, "nnnn");
        error_data_10mb: Call => FailsOrLate(Failed, "no (code -32000)");
        error_code_1e400: Call => Fails(Failed, "no");
        escapes_in_error: Call => Fails(Failed, "no");
        result_null: Call => Answered;
        result_number: Call => Answered;
        result_text: Call => Answered;
        result_list: Call => Answered;
        result_empty: Call => Anything;
        content_null: Call => Anything;
        content_text: Call => Anything;
        content_of_nothing: Call => Anything;
        content_unknown: Call => Answered;
        content_100000: Call => Answered;
        image_not_base64: Call => Answered;
        number_1e400: Call => Answered;
        is_error_5mb: Call => FailsOrLate(Failed, "eeee");
        is_error_number: Call => Anything;
        result_type_unknown: Call => Anything;
        lone_surrogate: Call => Anything;
        escaped_nul: Call => Answered;
        asks_without_end: Call => Fails(Failed, "needs an answer before it goes on");
        asks_nothing_without_end: Call => Fails(Failed, "asked back 10 times");
        asks_10000_things: Call => Fails(Failed, "needs an answer before it goes on");
        state_of_1mb: Call => Fails(Failed, "asked back 10 times");
        batch_100000: Call => Anything;
        batch_of_batches: Call => Fails(Timeout, "silent for 1 s");
        empty_batch: Call => Fails(Timeout, "silent for 1 s");

        // How it introduces itself.
        unknown_version: Connect => NoConnection("2099-01-01");
        version_of_1mb: Connect => NoConnection("");
        introduction_null: Connect => NoConnection("was answered with something else");
        introduction_number: Connect => NoConnection("was answered with something else");
        introduction_list: Connect => NoConnection("was answered with something else");
        introduction_deep: Connect => NoConnection("nested more than 128 levels deep");
        introduction_refused: Connect => NoConnection("it refused");

        // Which tools it has.
        many_tools: Connect => NoConnection("5000");
        huge_list: Connect => NoConnection("longer than 16777216 bytes");
        list_9mb: Connect => NoConnection("longer than 8388608 bytes");
        many_large_tools: Connect => Good;
        huge_description: Connect => NoConnection("longer than 8388608 bytes");
        description_7mb: Connect => Quarantined("bytes; at most");
        huge_name: Connect => Quarantined("bytes; at most");
        deep_schema: Connect => NoConnection("nested more than 128 levels deep");
        schema_100_levels: Connect => Quarantined("");
        duplicate_schema_keys: Connect => Quarantined("cannot be read safely");
        schema_number_1e400: Connect => Anything;
        ref_cycle: Connect => Good;
        remote_ref: Connect => Good;
        regex_bomb: Connect => Good;
        regex_size_bomb: Connect => Good;
        wide_schema: Connect => Quarantined("");
        branching_schema: Connect => Quarantined("");
        duplicate_names: Connect => Quarantined("2 different definitions");
        names_by_case: Connect => Good;
        homoglyph_name: Connect => Good;
        hidden_name: Connect => Quarantined("people cannot see");
        control_name: Connect => Quarantined("");
        names_of_nothing: Connect => Quarantined("no name");
        schemas_of_nothing: Connect => Quarantined("inputSchema");
        too_many_times_the_same: Connect => Good;
        tools_not_a_list: Connect => NoConnection("tools/list was answered with something else");
        tools_null: Connect => Anything;
        endless_pagination: Connect => NoConnection("1000");
        repeating_cursor: Connect => NoConnection("");
        alternating_cursors: Connect => NoConnection("1000");
        empty_cursor: Connect => Anything;
        huge_cursor: Connect => Anything;
        cursor_number: Connect => Anything;
    }

    legacy_stdio: LegacyStdio {
        exit_at_initialize: Connect => NoConnection("ended (exit code 7)");
        exit_after_initialize: Connect => NoConnection("ended (exit code 5)");
        hang_at_initialize: Connect => NoConnection("did not answer within 2 s");
        signal_at_initialize: Connect => NoConnection("signal 9");
        half_a_line_at_initialize: Connect => NoConnection("ended (exit code 0)");
        unknown_version: Connect => NoConnection("2099-01-01");
        version_number: Connect => NoConnection("initialize was answered with something else");
        introduction_null: Connect => NoConnection("initialize was answered with something else");
        introduction_empty: Connect => NoConnection("initialize was answered with something else");
        introduction_wrong_error: Connect => NoConnection("it refused");
        list_changed_flood: Call => Good;
        list_changes_without_end: Call => Good;
        flood_when_idle: Call => Good;
        progress_flood: Call => Good;
        progress_without_end: Call => Dropped;
        log_flood: Call => Good;
        large_notifications: Call => Good;
        ping_flood: Call => Good;
        sampling_flood: Call => Good;
        elicitation_flood: Call => Good;
        unknown_requests_flood: Call => Good;
        refuses_to_die: Call => Good;
    }

    http: Http {
        // Where it leads.
        redirect_loop_at_connect: Connect => NoConnection("redirects");
        redirect_other_origin_at_connect: Connect => NoConnection("redirects");
        redirect_loop: Call => Fails(Lost, "redirects");
        redirect_303: Call => Fails(Lost, "redirects");
        redirect_301: Call => Fails(Lost, "redirects");
        redirect_other_origin: Call => Fails(Lost, "redirects");
        redirect_other_port: Call => Fails(Lost, "redirects");
        redirect_file: Call => Fails(Lost, "redirects");
        redirect_metadata: Call => Fails(Lost, "redirects");
        redirect_userinfo: Call => Fails(Lost, "redirects");
        redirect_nowhere: Call => Fails(Lost, "redirects");
        redirect_1mb: Call => Anything;

        // What it says before the body.
        html_200_at_connect: Connect => NoConnection("");
        html_200: Call => Fails(Lost, "text/html");
        status_500_at_every: Connect => NoConnection("");
        status_500: Calls => Fails(Lost, "HTTP status 500");
        status_503: Call => Fails(Lost, "HTTP status 503");
        status_429: Call => Fails(Unavailable, "HTTP status 429");
        status_202: Call => Fails(Lost, "202");
        status_204: Call => Fails(Lost, "204");
        status_304: Call => Fails(Lost, "redirects");
        status_999: Call => Fails(Lost, "999");
        status_404: Call => Fails(Unavailable, "404");
        challenge_100kb_at_connect: Connect => NoConnection("401");
        challenge_100kb: Call => Fails(Unavailable, "401");
        challenge_strange: Call => Fails(Unavailable, "401");
        no_content_type: Call => Fails(Lost, "no type");
        empty_body: Call => Fails(Lost, "");
        error_body_endless: Call => Fails(Lost, "400");
        error_body_drip: Call => Anything;
        tls_at_connect: Connect => NoConnection("broke");
        tls: Call => Fails(Lost, "broke");
        not_http: Call => Fails(Lost, "broke");
        http_without_head: Call => Fails(Lost, "broke");
        nothing: Call => Fails(Lost, "broke");
        silence: Call => Fails(Timeout, "silent for 1 s");
        silence_at_connect: Connect => NoConnection("did not answer within 2 s");
        silence_at_list: Connect => NoConnection("did not answer");
        head_drip: Call => Fails(Timeout, "silent for 1 s");
        endless_head: Call => Fails(Lost, "");
        endless_header: Call => Fails(Lost, "");
        endless_continue: Call => Anything;
        switching_protocols: Call => Anything;

        // What it does with lengths, chunks and codings.
        gzip_bomb: Call => Fails(Lost, "gzip");
        gzip_bomb_error: Call => Fails(Lost, "400");
        gzip_bomb_events: Call => Fails(Lost, "gzip");
        unknown_encoding: Call => Fails(Lost, "zstd");
        length_short: Call => Fails(Lost, "");
        length_long: Call => Fails(Lost, "broke");
        length_100mb: Calls => Fails(Lost, "longer than 16777216 bytes");
        length_15mb_and_silence: Calls => Fails(Timeout, "silent for 1 s");
        length_negative: Call => Fails(Lost, "broke");
        length_overflow: Call => Fails(Lost, "broke");
        length_twice: Call => Fails(Lost, "broke");
        length_and_chunked: Call => Anything;
        chunks_endless: Call => FailsOrLate(Lost, "longer than");
        chunk_overflow: Call => Fails(Lost, "broke");
        chunk_extension_endless: Call => Fails(Lost, "broke");
        chunk_garbage: Call => Fails(Lost, "broke");
        chunk_trailers_endless: Call => Anything;
        huge_result: Call => FailsOrLate(Lost, "longer than 16777216 bytes");
        huge_results: Calls => Heavy;
        slow_drip: Call => Fails(Timeout, "silent for 1 s");
        body_drip: Call => Fails(Timeout, "silent for 1 s");

        // When it breaks.
        reset_at_connect: Connect => NoConnection("");
        reset_at_list: Connect => NoConnection("");
        reset_at_call: Calls => Fails(Lost, "broke");
        reset_in_head_at_call: Call => Fails(Lost, "broke");
        reset_in_body_at_call: Call => Fails(Lost, "broke");
        reset_in_event_at_call: Call => Fails(Lost, "broke");

        // Events instead of an answer.
        endless_events: Calls => Anything;
        endless_other_events: Call => FailsOrLate(Lost, "longer than");
        endless_comments: Call => FailsOrLate(Lost, "longer than");
        endless_line: Call => FailsOrLate(Lost, "longer than");
        endless_data_lines: Call => FailsOrLate(Lost, "longer than");
        endless_field: Call => FailsOrLate(Lost, "longer than");
        endless_ids: Call => FailsOrLate(Lost, "longer than");
        endless_answers_to_others: Call => FailsOrLate(Lost, "longer than");
        event_drip: Call => Fails(Timeout, "silent for 1 s");
        event_silence: Call => Fails(Timeout, "silent for 1 s");
        half_an_event: Call => Fails(Lost, "ended before the answer");
        no_answer_then_end: Call => Fails(Lost, "ended before the answer");
        event_not_json: Call => Fails(Lost, "not JSON");
        answer_to_another: Calls => Fails(Lost, "not the answer");
        answer_to_another_event: Call => Fails(Lost, "ended before the answer");
        carriage_returns: Call => Good;
        open_after_answer: Calls => Good;
        wrong_id: Call => Fails(Lost, "not the answer");
        string_id: Call => Fails(Lost, "not the answer");
        duplicate_result_keys: Call => Fails(Lost, "twice");
        deep_result: Call => Fails(Lost, "nested more than 128 levels deep");
        invalid_utf8: Call => Fails(Lost, "not UTF-8");
        nul_byte: Call => Fails(Lost, "not JSON");
        batch_100000: Call => Anything;
        error_10mb: Call => FailsOrLate(Failed, "nnnn");
        introduction_null: Connect => NoConnection("");
        many_tools: Connect => NoConnection("5000");
        endless_pagination: Connect => NoConnection("");
    }

    events: Events {
        huge_result: Call => FailsOrLate(Lost, "longer than 16777216 bytes");
        huge_results: Calls => Heavy;
        slow_drip: Call => Fails(Timeout, "silent for 1 s");
        deep_result: Call => Fails(Lost, "nested more than 128 levels deep");
        invalid_utf8: Call => Fails(Lost, "not UTF-8");
        duplicate_answers: Call => Good;
        progress_without_end: Call => Dropped;
        progress_flood: Call => Good;
        log_flood: Call => Good;
        late_first_answer: CancelThenCall => Good;
        many_large_tools: Connect => Good;
    }

    legacy_http: LegacyHttp {
        session_1mb_at_connect: Connect => NoConnection("");
        session_100kb_at_connect: Connect => Anything;
        session_control_at_connect: Connect => NoConnection("");
        session_latin_at_connect: Connect => Anything;
        status_404: Call => Fails(Unavailable, "404");
        endless_comments_at_listen: Call => Good;
        endless_line_at_listen: Call => Good;
        silence_at_listen: Call => Good;
        no_answer_then_end_at_listen: Call => Good;
        retry_zero_at_listen: Call => Good;
        tls_at_listen: Call => Good;
    }

    legacy_events: LegacyEvents {
        retry_zero: Call => Anything;
        retry_huge: Call => Fails(Timeout, "silent for 1 s");
        event_id_strange: Call => Anything;
        event_id_1mb: Call => Anything;
        ping_flood: Call => Good;
        sampling_flood: Call => Good;
        list_changed_flood: Call => Good;
        progress_without_end: Call => Dropped;
    }

    first_revision: FirstRevision {
        good: Call => Good;
        endpoint_other_origin: Connect => NoConnection("another origin");
        endpoint_other_port: Connect => NoConnection("another origin");
        endpoint_metadata: Connect => NoConnection("another origin");
        endpoint_file: Connect => NoConnection("another origin");
        endpoint_userinfo: Connect => NoConnection("another origin");
        endpoint_1mb: Connect => NoConnection("");
        endpoint_empty: Connect => Anything;
        endpoint_never: Connect => NoConnection("");
        endpoint_silence: Connect => NoConnection("no endpoint event within");
        endpoint_end: Connect => NoConnection("");
        stream_ends: Call => Fails(Lost, "");
        half_an_event: Call => Fails(Lost, "");
        silence: Call => Fails(Timeout, "silent for 1 s");
        endless_comments: Call => FailsOrLate(Lost, "longer than");
        endless_events: Call => Anything;
        huge_result: Calls => Fails(Lost, "longer than");
        deep_result: Call => Fails(Lost, "nested more than 128 levels deep");
        wrong_id: Call => Fails(Timeout, "silent for 1 s");
        duplicate_answers: Call => Good;
        ping_flood: Call => Good;
    }
}
