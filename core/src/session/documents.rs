//! The documents that a session sends, written from what it knows at that moment. What they say is
//! fixed before their first piece is written: settings once agreed, accounts once the test is
//! measured.

use super::SessionError;
use super::outbox::{DocumentKind, Documents};
use crate::protocol::explanation::OutgoingExplanation;
use crate::protocol::extension::{Offer, OutgoingExtension};
use crate::protocol::frame::{Outgoing, PIECE_BYTES};
use crate::protocol::parameters::OutgoingParameters;
use crate::protocol::results::{OutgoingResults, ResultsStream};
use crate::report::StreamDetail;
use crate::stats::Accounts;
use crate::test::Role;

/// All documents of one session.
pub struct SessionDocuments<'s, const N: usize> {
    pub(super) parameters: Option<OutgoingParameters<'s>>,
    pub(super) extension: Option<Offer>,
    /// What is explained to a client that is refused.
    pub(super) refused: Option<SessionError>,
    pub(super) results: OwnResults<'s, N>,
}

/// What this end's results are made of.
pub struct OwnResults<'s, const N: usize> {
    pub(super) accounts: &'s Accounts<N>,
    pub(super) congestion: Option<&'s str>,
    pub(super) server_output_bytes: Option<u32>,
    pub(super) concurrent_tests: Option<u32>,
    pub(super) jitter_of_batches: bool,
    /// The other end is linerate, too, and told more.
    pub(super) is_extended: bool,
}

impl<const N: usize> SessionDocuments<'_, N> {
    fn with<R>(&self, kind: DocumentKind, read: impl FnOnce(&dyn Outgoing) -> R) -> R {
        match (kind, &self.parameters, &self.extension, &self.refused) {
            (DocumentKind::Parameters, Some(parameters), ..) => read(parameters),
            (DocumentKind::Extension, _, Some(offer), _) => read(&OutgoingExtension(*offer)),
            (DocumentKind::Explanation, .., Some(refused)) => read(&OutgoingExplanation(refused)),
            (DocumentKind::Results, ..) => read(&self.results.document()),
            _ => unreachable!("a session queues only documents that it has"),
        }
    }
}

impl<const N: usize> Documents for SessionDocuments<'_, N> {
    fn len(&self, kind: DocumentKind) -> u32 {
        self.with(kind, |document| document.body_bytes()).expect("its texts are far below 4 GiB")
    }

    fn write_piece(
        &self,
        kind: DocumentKind,
        index: usize,
        out: &mut [u8; PIECE_BYTES],
    ) -> Option<usize> {
        self.with(kind, |document| document.write_piece(index, out))
    }

    fn insert(&self, kind: DocumentKind) -> Option<(usize, u32)> {
        self.with(kind, |document| document.insert_before())
    }
}

impl<'s, const N: usize> OwnResults<'s, N> {
    fn document(
        &self,
    ) -> OutgoingResults<'s, impl Fn(usize) -> ResultsStream, impl Fn(usize) -> StreamDetail> {
        let (accounts, is_extended) = (self.accounts, self.is_extended);
        OutgoingResults {
            cpu: accounts.cpu(),
            sender_has_retransmits: self.sender_has_retransmits(),
            congestion: self.congestion,
            stream_count: accounts.streams().len(),
            stream: move |index| {
                let stream = accounts.results(index);
                let told = |count: Option<u64>| count.filter(|_| is_extended);
                let (duplicates, too_late) = (told(stream.duplicates), told(stream.too_late));
                ResultsStream { duplicates, too_late, ..stream }
            },
            detail: is_extended.then_some(move |index| accounts.detail(index)),
            concurrent_tests: self.concurrent_tests.filter(|_| is_extended),
            jitter_of_batches: self.jitter_of_batches && is_extended,
            server_output_bytes: self.server_output_bytes,
        }
    }

    /// -1: this end only receives; 0: it sends and counts no retransmits; 1: it counts them.
    fn sender_has_retransmits(&self) -> i8 {
        let streams = self.accounts.streams();
        let counts = |index| self.accounts.results(index).retransmits.is_some();
        if streams.iter().all(|stream| stream.role() == Role::Receiver) {
            -1
        } else {
            i8::from((0..streams.len()).any(counts))
        }
    }
}
