//! Documents that real iperf3 ends sent, for tests: the bodies of frames from control connections
//! recorded on loopback, with the name of the recording (iperf3 3.21 on both sides, or 3.1.3 where
//! it says old).

/// What clients asked for.
pub(super) const PARAMETERS: &[(&str, &str)] = &[
    (
        "auth-ok",
        r#"{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"len":5000,"bandwidth":200000,"pacing_timer":1000,"authtoken":"UzH+eQNwxeObfi9pl59+qxVCgtjfw0s4x4Dp3IQd3rtiVoSt+UA05fAkdXwXwdBPz/UpW+QD+H7gLzaPXDRF7wDtLRq0wCSnTt20y/yAvUw7CymYAiQsyp+cOdeWmoNSYYQnmfP5LBbgS4Fj0Unxm5i8F1DbgKCYaYuyeluLGHNpSBoGAUXAjnxSYfrJ5NpRamBX+JIN74/dgUng44j09V0FZlqJn/G4DJO+UasWIMj6KzzPWZ3WZSLF79XHLmSA1cPBuQG2/msiV1kdShCaslPJ8j2K4j30RuZQc18YxCIp6q4SBeEd2XI2P5t3cwGIIMqprGESJMMMk7Rz9bgXLw==","client_version":"3.21+"}"#,
    ),
    (
        "busy",
        r#"{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"len":5000,"bandwidth":200000,"pacing_timer":1000,"client_version":"3.21+"}"#,
    ),
    (
        "client-terminate",
        r#"{"tcp":true,"omit":0,"time":5,"num":0,"blockcount":0,"parallel":1,"len":5000,"bandwidth":200000,"pacing_timer":1000,"client_version":"3.21+"}"#,
    ),
    (
        "server-error-limit",
        r#"{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"len":131072,"bandwidth":10000000,"pacing_timer":1000,"client_version":"3.21+"}"#,
    ),
    (
        "server-max-duration",
        r#"{"tcp":true,"omit":0,"time":10,"num":0,"blockcount":0,"parallel":1,"len":131072,"bandwidth":200000,"pacing_timer":1000,"client_version":"3.21+"}"#,
    ),
    (
        "tcp-bidir",
        r#"{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"bidirectional":true,"len":5000,"bandwidth":200000,"pacing_timer":1000,"client_version":"3.21+"}"#,
    ),
    (
        "tcp-getoutput",
        r#"{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"len":5000,"bandwidth":200000,"pacing_timer":1000,"get_server_output":1,"client_version":"3.21+"}"#,
    ),
    (
        "tcp-old-client-new-server",
        r#"{"tcp":true,"omit":0,"time":1,"parallel":1,"len":5000,"bandwidth":200000,"client_version":"3.1.3"}"#,
    ),
    (
        "tcp-omit-title",
        r#"{"tcp":true,"omit":1,"time":1,"num":0,"blockcount":0,"MSS":1400,"nodelay":true,"parallel":1,"window":65536,"len":5000,"bandwidth":200000,"fqrate":1000000,"pacing_timer":1000,"TOS":32,"title":"MyTitle","extra_data":"xyz","congestion":"cubic","repeating_payload":1,"client_version":"3.21+"}"#,
    ),
    (
        "tcp-reverse-p2",
        r#"{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":2,"reverse":true,"len":5000,"bandwidth":200000,"pacing_timer":1000,"client_version":"3.21+"}"#,
    ),
    (
        "udp-64bit",
        r#"{"udp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"len":1000,"bandwidth":80000,"pacing_timer":1000,"gso":0,"gso_dg_size":0,"gso_bf_size":65507,"gro":0,"gro_bf_size":65507,"udp_counters_64bit":1,"client_version":"3.21+"}"#,
    ),
    (
        "udp-bidir-p2",
        r#"{"udp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":2,"bidirectional":true,"len":1000,"bandwidth":80000,"pacing_timer":1000,"gso":0,"gso_dg_size":0,"gso_bf_size":65507,"gro":0,"gro_bf_size":65507,"client_version":"3.21+"}"#,
    ),
    (
        "udp-gsro",
        r#"{"udp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"len":1000,"bandwidth":2000000,"pacing_timer":1000,"gso":1,"gso_dg_size":1000,"gso_bf_size":65000,"gro":1,"gro_bf_size":65507,"client_version":"3.21+"}"#,
    ),
    (
        "udp-new-client-old-server",
        r#"{"udp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"len":1000,"bandwidth":80000,"pacing_timer":1000,"gso":0,"gso_dg_size":0,"gso_bf_size":65507,"gro":0,"gro_bf_size":65507,"client_version":"3.21+"}"#,
    ),
    (
        "udp-old-client-new-server",
        r#"{"udp":true,"omit":0,"time":1,"parallel":1,"len":1000,"bandwidth":80000,"client_version":"3.1.3"}"#,
    ),
    (
        "udp-reverse",
        r#"{"udp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"reverse":true,"len":1000,"bandwidth":80000,"pacing_timer":1000,"gso":0,"gso_dg_size":0,"gso_bf_size":65507,"gro":0,"gro_bf_size":65507,"client_version":"3.21+"}"#,
    ),
];

/// What both ends measured.
pub(super) const RESULTS: &[(&str, &str)] = &[
    (
        "auth-ok client",
        r#"{"cpu_util_total":0.24803818912215184,"cpu_util_user":0.2096181485919951,"cpu_util_system":0.038320506746399863,"sender_has_retransmits":1,"congestion_used":"bbr","streams":[{"id":1,"bytes":30000,"retransmits":0,"jitter":0,"errors":0,"omitted_errors":0,"packets":0,"omitted_packets":0,"start_time":0,"end_time":1.000559}]}"#,
    ),
    (
        "tcp-getoutput server",
        r#"{"cpu_util_total":0.030350225629966854,"cpu_util_user":0.030250389361447225,"cpu_util_system":0,"sender_has_retransmits":-1,"congestion_used":"cubic","server_output_text":"Accepted connection from 127.0.0.1, port 55722\n[  5] local 127.0.0.1 port 6405 connected to 127.0.0.1 port 55732\n[ ID] Interval           Transfer     Bitrate\n[  5]   0.00-1.00   sec  29.3 KBytes   240 Kbits/sec                  \n- - - - - - - - - - - - - - - - - - - - - - - - -\n[ ID] Interval           Transfer     Bitrate\n[  5]   0.00-1.00   sec  29.3 KBytes   240 Kbits/sec                  receiver\n","streams":[{"id":1,"bytes":30000,"retransmits":-1,"jitter":0,"errors":0,"omitted_errors":0,"packets":0,"omitted_packets":0,"start_time":0,"end_time":1.001631}]}"#,
    ),
    (
        "tcp-old-client-new-server client",
        r#"{"cpu_util_total":0.334035,"cpu_util_user":0.334035,"cpu_util_system":0,"sender_has_retransmits":1,"streams":[{"id":1,"bytes":55000,"retransmits":0,"jitter":0,"errors":0,"packets":0}]}"#,
    ),
    (
        "tcp-reverse-p2 server",
        r#"{"cpu_util_total":0.076175471498177577,"cpu_util_user":0.076175471498177577,"cpu_util_system":0,"sender_has_retransmits":1,"congestion_used":"cubic","streams":[{"id":1,"bytes":30000,"retransmits":0,"jitter":0,"errors":0,"omitted_errors":0,"packets":0,"omitted_packets":0,"start_time":0,"end_time":1.000297},{"id":3,"bytes":25000,"retransmits":0,"jitter":0,"errors":0,"omitted_errors":0,"packets":0,"omitted_packets":0,"start_time":0,"end_time":1.000299}]}"#,
    ),
    (
        "udp-bidir-p2 client",
        r#"{"cpu_util_total":0.22013974435062764,"cpu_util_user":0.22023949049668592,"cpu_util_system":0,"sender_has_retransmits":0,"streams":[{"id":1,"bytes":10000,"retransmits":-1,"jitter":0,"errors":0,"omitted_errors":0,"packets":10,"omitted_packets":0,"start_time":0,"end_time":1.000707},{"id":3,"bytes":10000,"retransmits":-1,"jitter":0,"errors":0,"omitted_errors":0,"packets":10,"omitted_packets":0,"start_time":0,"end_time":1.000707},{"id":4,"bytes":11000,"retransmits":-1,"jitter":2.262888470508642e-05,"errors":0,"omitted_errors":0,"packets":11,"omitted_packets":0,"start_time":0,"end_time":1.000707},{"id":5,"bytes":11000,"retransmits":-1,"jitter":2.5537330956171895e-05,"errors":0,"omitted_errors":0,"packets":11,"omitted_packets":0,"start_time":0,"end_time":1.000707}]}"#,
    ),
    (
        "udp-bidir-p2 server",
        r#"{"cpu_util_total":0.12150826126274662,"cpu_util_user":0.12150826126274662,"cpu_util_system":0,"sender_has_retransmits":0,"streams":[{"id":1,"bytes":10000,"retransmits":-1,"jitter":2.2125089511377154e-05,"errors":0,"omitted_errors":0,"packets":10,"omitted_packets":0,"start_time":0,"end_time":1.000727},{"id":3,"bytes":10000,"retransmits":-1,"jitter":3.637906694051344e-05,"errors":0,"omitted_errors":0,"packets":10,"omitted_packets":0,"start_time":0,"end_time":1.000727},{"id":4,"bytes":11000,"retransmits":-1,"jitter":2.262888470508642e-05,"errors":0,"omitted_errors":0,"packets":11,"omitted_packets":0,"start_time":0,"end_time":1.000727},{"id":5,"bytes":11000,"retransmits":-1,"jitter":2.5537330956171895e-05,"errors":0,"omitted_errors":0,"packets":11,"omitted_packets":0,"start_time":0,"end_time":1.000727}]}"#,
    ),
    (
        "udp-gsro server",
        r#"{"cpu_util_total":99.4953688980958,"cpu_util_user":16.048505197341463,"cpu_util_system":83.446664320627178,"sender_has_retransmits":-1,"streams":[{"id":1,"bytes":260000,"retransmits":-1,"jitter":1.135268878092828e-07,"errors":0,"omitted_errors":0,"packets":260,"omitted_packets":0,"start_time":0,"end_time":1.003047}]}"#,
    ),
    (
        "udp-new-client-old-server server",
        r#"{"cpu_util_total":0.044783,"cpu_util_user":0.044783,"cpu_util_system":0,"sender_has_retransmits":-1,"streams":[{"id":1,"bytes":11000,"retransmits":-1,"jitter":58873076.093619,"errors":0,"packets":11}]}"#,
    ),
    (
        "udp server",
        r#"{"cpu_util_total":0.0901891575254013,"cpu_util_user":0.090089280274542577,"cpu_util_system":0,"sender_has_retransmits":-1,"streams":[{"id":1,"bytes":11000,"retransmits":-1,"jitter":9.1749084615567e-06,"errors":0,"omitted_errors":0,"packets":11,"omitted_packets":0,"start_time":0,"end_time":1.001136}]}"#,
    ),
];
