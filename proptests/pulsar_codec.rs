//! Whatever bytes come, the Pulsar codec gives frames, commands or an error: never a panic, and never more
//! memory than the bytes that came.

use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::prelude::*;
use seawall::domain::{EntryId, LedgerId, Position};
use seawall::frontend::pulsar::codec::{
    Command, ENTRY_MESSAGES_MAX, MessageHead, encode_command, encode_entry, encode_message_head,
    encode_payload_command, encode_send_receipt, inspect_entry, next_frame, proto,
    reserve_for_next, split_entry,
};

/// Frame limit of the tests; a read buffer may hold a little more.
const LIMIT: usize = 64 * 1024;
const READ_SPACE: usize = 64 * 1024;

/// Feeds bytes in pieces as a socket would; gives the commands read before the end or the first error.
fn feed(bytes: &[u8], piece: usize) -> Vec<Command> {
    let mut buffer = BytesMut::new();
    let mut commands = Vec::new();
    for part in bytes.chunks(piece.max(1)) {
        reserve_for_next(&mut buffer);
        assert!(
            buffer.capacity() <= 2 * (buffer.len() + READ_SPACE),
            "{} bytes reserved for {} that came",
            buffer.capacity(),
            buffer.len()
        );
        buffer.extend_from_slice(part);
        loop {
            match next_frame(&mut buffer, LIMIT) {
                Ok(Some(frame)) => {
                    // Both must hold for any bytes: an answer or an error.
                    let _ = inspect_entry(&frame.payload).map(|facts| {
                        assert!((1..=ENTRY_MESSAGES_MAX).contains(&facts.message_count));
                    });
                    let _ = split_entry(&frame.payload);
                    match Command::decode(&frame.command) {
                        Ok(command) => commands.push(command),
                        Err(_) => return commands,
                    }
                }
                Ok(None) => break,
                Err(_) => return commands,
            }
        }
    }
    commands
}

fn text() -> impl Strategy<Value = String> {
    "[a-z0-9:/_.-]{0,24}"
}

fn entry() -> impl Strategy<Value = Bytes> {
    (
        text(),
        any::<u64>(),
        any::<u64>(),
        proptest::option::of(1..2000_i32),
        vec(any::<u8>(), 0..300),
    )
        .prop_map(|(producer_name, sequence_id, publish_time, batch, payload)| {
            let metadata = proto::MessageMetadata {
                producer_name,
                sequence_id,
                publish_time,
                num_messages_in_batch: batch,
                ..Default::default()
            };
            encode_entry(&metadata, &payload)
        })
}

/// Frames a client or broker may send, encoded.
fn frame() -> impl Strategy<Value = (Command, Bytes)> {
    let id = (any::<u64>(), any::<u64>(), vec(any::<i64>(), 0..4)).prop_map(
        |(ledger_id, entry_id, ack_set)| proto::MessageIdData {
            ledger_id,
            entry_id,
            ack_set,
            ..Default::default()
        },
    );
    prop_oneof![
        (any::<u64>(), any::<u64>(), entry()).prop_map(|(producer_id, sequence_id, entry)| {
            let send = proto::CommandSend { producer_id, sequence_id, ..Default::default() };
            (Command::Send(send), entry)
        }),
        (any::<u64>(), vec(id, 0..5), proptest::option::of(any::<u64>())).prop_map(
            |(consumer_id, message_id, request_id)| {
                let ack =
                    proto::CommandAck { consumer_id, message_id, request_id, ..Default::default() };
                (Command::Ack(ack), Bytes::new())
            }
        ),
        (text(), text(), any::<u64>()).prop_map(|(topic, subscription, consumer_id)| {
            let subscribe =
                proto::CommandSubscribe { topic, subscription, consumer_id, ..Default::default() };
            (Command::Subscribe(subscribe), Bytes::new())
        }),
        (text(), any::<i32>()).prop_map(|(client_version, version)| {
            let connect = proto::CommandConnect {
                client_version,
                protocol_version: Some(version),
                ..Default::default()
            };
            (Command::Connect(connect), Bytes::new())
        }),
        Just((Command::Ping(proto::CommandPing {}), Bytes::new())),
    ]
}

fn encode(frames: &[(Command, Bytes)]) -> Vec<u8> {
    let mut buffer = BytesMut::new();
    for (command, payload) in frames {
        if payload.is_empty() {
            encode_command(command, &mut buffer);
        } else {
            encode_payload_command(command, payload, &mut buffer);
        }
    }
    buffer.to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn random_bytes_are_survived(bytes in vec(any::<u8>(), 0..2000), piece in 1..300_usize) {
        feed(&bytes, piece);
    }

    #[test]
    fn random_commands_in_good_frames_are_survived(
        number in 0..80_u32,
        body in vec(any::<u8>(), 0..200),
        payload in vec(any::<u8>(), 0..100),
    ) {
        let mut command = vec![0x08, number as u8];
        prost::encoding::encode_varint(u64::from(number) << 3 | 2, &mut command);
        prost::encoding::encode_varint(body.len() as u64, &mut command);
        command.extend_from_slice(&body);
        let mut bytes = ((4 + command.len() + payload.len()) as u32).to_be_bytes().to_vec();
        bytes.extend_from_slice(&(command.len() as u32).to_be_bytes());
        bytes.extend_from_slice(&command);
        bytes.extend_from_slice(&payload);
        feed(&bytes, bytes.len());
    }

    #[test]
    fn good_frames_come_through_whatever_the_pieces(
        frames in vec(frame(), 1..8),
        piece in 1..400_usize,
    ) {
        let commands: Vec<Command> = frames.iter().map(|(command, _)| command.clone()).collect();
        prop_assert_eq!(feed(&encode(&frames), piece), commands);
    }

    #[test]
    fn damaged_frames_are_survived(
        frames in vec(frame(), 1..5),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        piece in 1..400_usize,
    ) {
        let mut bytes = encode(&frames);
        for (index, value) in changes {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        feed(&bytes, piece);
    }

    #[test]
    fn a_damaged_entry_is_never_taken_for_good(
        entry in entry(),
        at in any::<prop::sample::Index>(),
        flip in 1..=255_u8,
    ) {
        let facts = inspect_entry(&entry).unwrap();
        prop_assert_eq!(&facts.stored, &entry);
        let mut damaged = entry.to_vec();
        // From the checksum on; a damaged magic makes it an entry without a checksum.
        let at = 2 + at.index(damaged.len() - 2);
        damaged[at] ^= flip;
        prop_assert!(inspect_entry(&Bytes::from(damaged)).is_err());
    }

    #[test]
    fn fast_paths_agree_with_the_generated_encoder(
        handle in any::<u64>(),
        sequence_id in any::<u64>(),
        highest in proptest::option::of(any::<u64>()),
        ledger in any::<u64>(),
        entry in 0..i64::MAX,
        partition in proptest::option::of(0..i32::MAX as u32),
        redelivery_count in any::<u32>(),
        ack_set in vec(any::<u64>(), 0..4),
        consumer_epoch in proptest::option::of(any::<u64>()),
    ) {
        let position = Position::new(LedgerId(ledger), EntryId(entry));
        let id = proto::MessageIdData {
            ledger_id: ledger,
            entry_id: entry as u64,
            ..Default::default()
        };
        let (mut by_hand, mut generated) = (BytesMut::new(), BytesMut::new());
        encode_send_receipt(handle, sequence_id, highest, position, &mut by_hand);
        let receipt = proto::CommandSendReceipt {
            producer_id: handle,
            sequence_id,
            message_id: Some(id.clone()),
            highest_sequence_id: highest,
        };
        encode_command(&Command::SendReceipt(receipt), &mut generated);
        let head = MessageHead {
            consumer_id: handle,
            position,
            partition,
            redelivery_count,
            ack_set: &ack_set,
            consumer_epoch,
        };
        encode_message_head(&head, 3, &mut by_hand);
        by_hand.extend_from_slice(b"abc");
        let message = proto::CommandMessage {
            consumer_id: handle,
            message_id: proto::MessageIdData {
                partition: partition.map(|partition| partition as i32),
                ..id
            },
            redelivery_count: (redelivery_count > 0).then_some(redelivery_count),
            ack_set: ack_set.iter().map(|word| *word as i64).collect(),
            consumer_epoch,
        };
        encode_payload_command(&Command::Message(message), b"abc", &mut generated);
        prop_assert_eq!(by_hand, generated);
    }
}
