//! The table of hostile servers, by transport. Each row is a test in a process of its own:
//! `case: action => expected outcome`.

use toolyard_core::ErrorKind::{Failed, ResponseLost, Timeout, Unavailable};

use crate::{
    case::{
        Action::{Call, Calls, CancelThenCall, Connect, LargeCall},
        Case,
        Expected::{Anything, Dropped, Fails, FailsOrLate, Good, Heavy, NoConnection, Quarantined, Succeeds},
        run_case,
    },
    test_host::ServerTransport,
};

macro_rules! hostile {
    ($($transport:ident: $variant:ident { $($case:ident: $action:expr => $expected:expr;)* })*) => {
        $(mod $transport {
            use super::*;

            $(#[test]
            fn $case() {
                run_case(&Case { transport: ServerTransport::$variant, name: &stringify!($case).replace("_", "-"), action: $action, expected: $expected });
            })*
        })*
    };
}

hostile! {
    stdio: Stdio {
        // Start, exit and hangs.
        exit_at_start: Connect => NoConnection("exited (exit code 3)");
        signal_at_start: Connect => NoConnection("signal 9");
        hang_at_start: Connect => NoConnection("did not respond within 2 s");
        closes_stdout_at_start: Connect => NoConnection("closed its standard output");
        exit_at_discover: Connect => NoConnection("exited (exit code 7)");
        exit_after_discover: Connect => NoConnection("exited (exit code 5)");
        exit_at_list: Connect => NoConnection("exited (exit code 7)");
        exit_after_list: Connect => Anything;
        exit_at_call: Call => Fails(ResponseLost, "exited (exit code 7)");
        exit_at_calls: Calls => Fails(ResponseLost, "");
        signal_at_call: Call => Fails(ResponseLost, "signal 9");
        exit_after_call: Call => Succeeds;
        hang_at_discover: Connect => NoConnection("did not respond within 2 s");
        hang_at_list: Connect => NoConnection("did not respond");
        hang_at_call: Calls => Fails(Timeout, "no response or progress from the server for 1 s");
        ignores_call: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        closes_stdout_at_call: Call => Fails(ResponseLost, "closed its standard output");
        half_a_line_at_discover: Connect => NoConnection("exited (exit code 0)");
        half_a_line_at_call: Call => Fails(ResponseLost, "exited (exit code 0)");
        no_line_end_at_call: Call => Succeeds;
        ignores_shutdown: Call => Good;
        forks_children: Call => Good;
        stdin_never_read: LargeCall => Fails(Timeout, "no response or progress from the server for 1 s");
        ping_flood_unread: LargeCall => Fails(Timeout, "no response or progress from the server for 1 s");

        // Bytes on stdout and stderr.
        line_300mb: Connect => NoConnection("longer than 16777216 bytes");
        brackets_300mb: Connect => NoConnection("message");
        huge_result: Calls => Fails(ResponseLost, "longer than 16777216 bytes");
        noise_300mb: Connect => Anything;
        endless_noise_line: Connect => Anything;
        noise_empty_lines: Connect => Anything;
        json_noise: Connect => Anything;
        garbage_before: Call => Good;
        garbage_at_discover: Call => Good;
        garbage_at_list: Call => Good;
        garbage_at_call: Calls => Good;
        garbage_after_call: Call => Good;
        carriage_returns: Call => Good;
        blank_lines: Call => Good;
        byte_order_mark: Call => Good;
        response_in_two_lines: Call => Good;
        responses_before_requests: Call => Good;
        stderr_flood: Calls => Good;
        stderr_flood_line: Calls => Good;
        stderr_escapes: Call => Good;
        slow_drip: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        invalid_utf8: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        half_a_character: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        nul_byte: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        raw_control: Call => Fails(Timeout, "no response or progress from the server for 1 s");

        // Ids of responses.
        wrong_id: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        next_id: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        string_id: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        float_id: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        exponent_id: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        negative_id: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        huge_id: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        null_id: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        object_id: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        no_id: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        duplicate_id_keys: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        duplicate_result_keys: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        neither_result_nor_error: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        duplicate_responses: Calls => Good;
        late_first_response: CancelThenCall => Good;
        late_response: Call => Fails(Timeout, "no response or progress from the server for 1 s");

        // Contents of responses.
        deep_result: Call => Fails(ResponseLost, "nested more than 128 levels deep");
        deep_content: Calls => Fails(ResponseLost, "nested more than 128 levels deep");
        error_deep: Call => Fails(ResponseLost, "nested more than 128 levels deep");
        result_and_error: Call => Fails(Failed, "no (code 1)");
        error_text: Call => Fails(Failed, "no");
        error_list: Call => Fails(Failed, "[1,2,3]");
        error_wrong_fields: Call => Fails(Failed, "code 0");
        error_10mb: Call => FailsOrLate(Failed, "nnnn");
        error_data_10mb: Call => FailsOrLate(Failed, "no (code -32000)");
        error_code_1e400: Call => Fails(Failed, "no");
        escapes_in_error: Call => Fails(Failed, "no");
        result_null: Call => Fails(ResponseLost, "not a JSON object");
        result_number: Call => Fails(ResponseLost, "not a JSON object");
        result_text: Call => Fails(ResponseLost, "not a JSON object");
        result_list: Call => Fails(ResponseLost, "not a JSON object");
        result_empty: Call => Anything;
        content_null: Call => Anything;
        content_text: Call => Anything;
        content_malformed: Call => Anything;
        content_unknown: Call => Succeeds;
        content_100000: Call => Succeeds;
        image_not_base64: Call => Succeeds;
        number_1e400: Call => Succeeds;
        is_error_5mb: Call => FailsOrLate(Failed, "eeee");
        is_error_number: Call => Anything;
        result_type_unknown: Call => Anything;
        lone_surrogate: Call => Anything;
        escaped_nul: Call => Succeeds;
        input_rounds_endless: Call => Fails(Failed, "the server needs input");
        empty_input_rounds_endless: Call => Fails(Failed, "asked for input 10 times");
        input_requests_10000: Call => Fails(Failed, "the server needs input");
        state_of_1mb: Call => Fails(Failed, "asked for input 10 times");
        batch_100000: Call => Anything;
        batch_of_batches: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        empty_batch: Call => Fails(Timeout, "no response or progress from the server for 1 s");

        // The handshake.
        unknown_version: Connect => NoConnection("2099-01-01");
        version_of_1mb: Connect => NoConnection("");
        handshake_null: Connect => NoConnection("invalid result of");
        handshake_number: Connect => NoConnection("invalid result of");
        handshake_list: Connect => NoConnection("invalid result of");
        handshake_deep: Connect => NoConnection("nested more than 128 levels deep");
        handshake_error_10mb: Connect => NoConnection("responded with an error");

        // The list of tools.
        many_tools: Connect => NoConnection("5000");
        huge_list: Connect => NoConnection("longer than 16777216 bytes");
        list_9mb: Connect => NoConnection("longer than 8388608 bytes");
        many_large_tools: Connect => Good;
        huge_description: Connect => NoConnection("longer than 8388608 bytes");
        description_7mb: Connect => Quarantined("bytes; at most");
        huge_name: Connect => Quarantined("bytes; at most");
        deep_schema: Connect => NoConnection("nested more than 128 levels deep");
        schema_100_levels: Connect => Quarantined("");
        duplicate_schema_keys: Connect => Quarantined("duplicate key");
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
        hidden_name: Connect => Quarantined("unsafe characters");
        control_name: Connect => Quarantined("");
        names_malformed: Connect => Quarantined("no name");
        schemas_malformed: Connect => Quarantined("inputSchema");
        same_tool_4000_times: Connect => Good;
        tools_not_a_list: Connect => NoConnection("invalid result of tools/list");
        tools_null: Connect => Anything;
        endless_pagination: Connect => NoConnection("1000");
        repeating_cursor: Connect => NoConnection("");
        alternating_cursors: Connect => NoConnection("1000");
        empty_cursor: Connect => Anything;
        huge_cursor: Connect => Anything;
        cursor_number: Connect => Anything;
    }

    legacy_stdio: LegacyStdio {
        exit_at_initialize: Connect => NoConnection("exited (exit code 7)");
        exit_after_initialize: Connect => NoConnection("exited (exit code 5)");
        hang_at_initialize: Connect => NoConnection("did not respond within 2 s");
        signal_at_initialize: Connect => NoConnection("signal 9");
        half_a_line_at_initialize: Connect => NoConnection("exited (exit code 0)");
        unknown_version: Connect => NoConnection("2099-01-01");
        version_not_a_string: Connect => NoConnection("invalid result of initialize");
        handshake_null: Connect => NoConnection("invalid result of initialize");
        handshake_empty: Connect => NoConnection("invalid result of initialize");
        handshake_error_text: Connect => NoConnection("responded with an error");
        list_changed_flood: Call => Good;
        list_changes_endless: Call => Good;
        flood_when_idle: Call => Good;
        progress_flood: Call => Good;
        progress_endless: Call => Dropped;
        log_flood: Call => Good;
        large_notifications: Call => Good;
        ping_flood: Call => Good;
        sampling_flood: Call => Good;
        elicitation_flood: Call => Good;
        unknown_requests_flood: Call => Good;
        ignores_shutdown: Call => Good;
    }

    http: Http {
        // Redirects.
        redirect_loop_at_connect: Connect => NoConnection("redirects");
        redirect_other_origin_at_connect: Connect => NoConnection("redirects");
        redirect_loop: Call => Fails(ResponseLost, "redirects");
        redirect_303: Call => Fails(ResponseLost, "redirects");
        redirect_301: Call => Fails(ResponseLost, "redirects");
        redirect_other_origin: Call => Fails(ResponseLost, "redirects");
        redirect_other_port: Call => Fails(ResponseLost, "redirects");
        redirect_file: Call => Fails(ResponseLost, "redirects");
        redirect_metadata: Call => Fails(ResponseLost, "redirects");
        redirect_userinfo: Call => Fails(ResponseLost, "redirects");
        redirect_invalid_url: Call => Fails(ResponseLost, "redirects");
        redirect_1mb: Call => Anything;

        // Statuses and heads.
        html_200_at_connect: Connect => NoConnection("");
        html_200: Call => Fails(ResponseLost, "text/html");
        status_500_at_every: Connect => NoConnection("");
        status_500: Calls => Fails(ResponseLost, "HTTP status 500");
        status_503: Call => Fails(ResponseLost, "HTTP status 503");
        status_429: Call => Fails(Unavailable, "HTTP status 429");
        status_202: Call => Fails(ResponseLost, "202");
        status_204: Call => Fails(ResponseLost, "204");
        status_304: Call => Fails(ResponseLost, "redirects");
        status_999: Call => Fails(ResponseLost, "999");
        status_404: Call => Fails(Unavailable, "404");
        challenge_100kb_at_connect: Connect => NoConnection("401");
        challenge_100kb: Call => Fails(Unavailable, "401");
        challenge_strange: Call => Fails(Unavailable, "401");
        no_content_type: Call => Fails(ResponseLost, "without content type");
        empty_body: Call => Fails(ResponseLost, "");
        error_body_endless: Call => Fails(ResponseLost, "400");
        error_body_drip: Call => Anything;
        tls_at_connect: Connect => NoConnection("connection was lost");
        tls: Call => Fails(ResponseLost, "connection was lost");
        not_http: Call => Fails(ResponseLost, "connection was lost");
        http_without_head: Call => Fails(ResponseLost, "connection was lost");
        nothing: Call => Fails(ResponseLost, "connection was lost");
        silence: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        silence_at_connect: Connect => NoConnection("did not respond within 2 s");
        silence_at_list: Connect => NoConnection("did not respond");
        head_drip: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        endless_head: Call => Fails(ResponseLost, "");
        endless_header: Call => Fails(ResponseLost, "");
        endless_continue: Call => Fails(ResponseLost, "too many informational responses");
        switching_protocols: Call => Anything;

        // Lengths, chunks and encodings.
        gzip_bomb: Call => Fails(ResponseLost, "gzip");
        gzip_bomb_error: Call => Fails(ResponseLost, "400");
        gzip_bomb_events: Call => Fails(ResponseLost, "gzip");
        unknown_encoding: Call => Fails(ResponseLost, "zstd");
        length_short: Call => Fails(ResponseLost, "");
        length_long: Call => Fails(ResponseLost, "connection was lost");
        length_100mb: Calls => Fails(ResponseLost, "longer than 16777216 bytes");
        length_15mb_and_silence: Calls => Fails(Timeout, "no response or progress from the server for 1 s");
        length_negative: Call => Fails(ResponseLost, "connection was lost");
        length_overflow: Call => Fails(ResponseLost, "connection was lost");
        length_twice: Call => Fails(ResponseLost, "connection was lost");
        length_and_chunked: Call => Anything;
        chunks_endless: Call => FailsOrLate(ResponseLost, "longer than");
        chunk_overflow: Call => Fails(ResponseLost, "connection was lost");
        chunk_extension_endless: Call => Fails(ResponseLost, "connection was lost");
        chunk_garbage: Call => Fails(ResponseLost, "connection was lost");
        chunk_trailers_endless: Call => Anything;
        huge_result: Call => FailsOrLate(ResponseLost, "longer than 16777216 bytes");
        huge_results: Calls => Heavy;
        slow_drip: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        body_drip: Call => Fails(Timeout, "no response or progress from the server for 1 s");

        // Resets.
        reset_at_connect: Connect => NoConnection("");
        reset_at_list: Connect => NoConnection("");
        reset_at_call: Calls => Fails(ResponseLost, "connection was lost");
        reset_in_head_at_call: Call => Fails(ResponseLost, "connection was lost");
        reset_in_body_at_call: Call => Fails(ResponseLost, "connection was lost");
        reset_in_event_at_call: Call => Fails(ResponseLost, "connection was lost");

        // Event streams.
        endless_events: Calls => Anything;
        endless_other_events: Call => FailsOrLate(ResponseLost, "longer than");
        endless_comments: Call => FailsOrLate(ResponseLost, "longer than");
        endless_line: Call => FailsOrLate(ResponseLost, "longer than");
        endless_data_lines: Call => FailsOrLate(ResponseLost, "longer than");
        endless_field: Call => FailsOrLate(ResponseLost, "longer than");
        endless_ids: Call => FailsOrLate(ResponseLost, "longer than");
        endless_responses_to_others: Call => FailsOrLate(ResponseLost, "longer than");
        event_drip: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        event_silence: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        half_an_event: Call => Fails(ResponseLost, "ended before the response");
        no_response_then_end: Call => Fails(ResponseLost, "ended before the response");
        event_not_json: Call => Fails(ResponseLost, "not JSON");
        response_to_another: Calls => Fails(ResponseLost, "JSON without the response");
        response_to_another_event: Call => Fails(ResponseLost, "ended before the response");
        carriage_returns: Call => Good;
        open_after_response: Calls => Good;
        wrong_id: Call => Fails(ResponseLost, "JSON without the response");
        string_id: Call => Fails(ResponseLost, "JSON without the response");
        duplicate_result_keys: Call => Fails(ResponseLost, "repeated field");
        deep_result: Call => Fails(ResponseLost, "nested more than 128 levels deep");
        invalid_utf8: Call => Fails(ResponseLost, "not UTF-8");
        nul_byte: Call => Fails(ResponseLost, "not JSON");
        batch_100000: Call => Anything;
        error_10mb: Call => FailsOrLate(Failed, "nnnn");
        handshake_null: Connect => NoConnection("");
        many_tools: Connect => NoConnection("5000");
        endless_pagination: Connect => NoConnection("");
    }

    http_events: HttpEvents {
        huge_result: Call => FailsOrLate(ResponseLost, "longer than 16777216 bytes");
        huge_results: Calls => Heavy;
        slow_drip: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        deep_result: Call => Fails(ResponseLost, "nested more than 128 levels deep");
        invalid_utf8: Call => Fails(ResponseLost, "not UTF-8");
        duplicate_responses: Call => Good;
        progress_endless: Call => Dropped;
        progress_flood: Call => Good;
        log_flood: Call => Good;
        late_first_response: CancelThenCall => Good;
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
        no_response_then_end_at_listen: Call => Good;
        retry_zero_at_listen: Call => Good;
        tls_at_listen: Call => Good;
    }

    legacy_http_events: LegacyHttpEvents {
        retry_zero: Call => Anything;
        retry_huge: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        event_id_strange: Call => Anything;
        event_id_1mb: Call => Anything;
        ping_flood: Call => Good;
        sampling_flood: Call => Good;
        list_changed_flood: Call => Good;
        progress_endless: Call => Dropped;
    }

    sse: Sse {
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
        endpoint_stream_ends: Connect => NoConnection("");
        stream_ends: Call => Fails(ResponseLost, "");
        half_an_event: Call => Fails(ResponseLost, "");
        silence: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        endless_comments: Call => FailsOrLate(ResponseLost, "longer than");
        endless_events: Call => Anything;
        huge_result: Calls => Fails(ResponseLost, "longer than");
        deep_result: Call => Fails(ResponseLost, "nested more than 128 levels deep");
        wrong_id: Call => Fails(Timeout, "no response or progress from the server for 1 s");
        duplicate_responses: Call => Good;
        ping_flood: Call => Good;
    }
}
