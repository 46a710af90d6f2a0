//! Frames captured from a real client and a broker, both directions, and the fast paths against the
//! generated encoder.

use bytes::{Bytes, BytesMut};

use super::*;
use crate::domain::{EntryId, LedgerId, Position};

/// One conversation: connect, look up, produce single and batched, consume, acknowledge, close.
const CONVERSATION: &[&str] = &[
    "0000002900000025080212210a1150756c7361722d4350502d76342e322e3020142a046e6f6e65520408011001",
    "000000150000001108031a0d0a0466616b651014188080c002",
    "0000002b000000270815aa01220a1e70657273697374656e743a2f2f7075626c69632f64656661756c742f67311001",
    "0000000f0000000b0816b20106080010011800",
    "0000002f0000002b0817ba01260a1e70657273697374656e743a2f2f7075626c69632f64656661756c742f6731100218003a00",
    "00000029000000250818c201200a1870756c7361723a2f2f3132372e302e302e313a3136363531180120022801",
    "000000340000003008052a2c0a1e70657273697374656e743a2f2f7075626c69632f64656661756c742f6731100018002800400048005000",
    "0000001d0000001908118a01140800120e7374616e64616c6f6e652d302d312200",
    "000000490000000808063204080010000e01149512080000002e0a0e7374616e64616c6f6e652d302d3110001886d9a1bba23422060a016112016232026b3160c0c4079201026f3168656c6c6f",
    "000000120000000e08073a0a080010001a0408031000",
    "000000570000000808063204080010010e01eb70cafc000000190a0e7374616e64616c6f6e652d302d3110011887d9a1bba23478787878787878787878787878787878787878787878787878787878787878787878787878787878",
    "000000120000000e08073a0a080010011a0408031001",
    "0000000c00000008080f7a0408001001",
    "0000000a00000006080d6a020801",
    "0000002b000000270815aa01220a1e70657273697374656e743a2f2f7075626c69632f64656661756c742f67311003",
    "0000000f0000000b0816b20106080010031800",
    "0000002f0000002b0817ba01260a1e70657273697374656e743a2f2f7075626c69632f64656661756c742f6731100418003a00",
    "00000029000000250818c201200a1870756c7361723a2f2f3132372e302e302e313a3136363531180120042801",
    "000000460000004208052a3e0a1e70657273697374656e743a2f2f7075626c69632f64656661756c742f67311001180228003a100a06535452494e471a046e756c6c2001400048005000",
    "0000001d0000001908118a01140802120e7374616e64616c6f6e652d302d312200",
    "0000005e0000000a080632060801100018030e0127271d69000000230a0e7374616e64616c6f6e652d302d3110001887d9a1bba23432026b304001482a5803e30000000812026b30180240006d300e007331180240016d310e007032180240026d32",
    "000000120000000e08073a0a080110001a0408031002",
    "0000002b000000270815aa01220a1e70657273697374656e743a2f2f7075626c69632f64656661756c742f67311005",
    "0000000f0000000b0816b20106080010051800",
    "0000002f0000002b0817ba01260a1e70657273697374656e743a2f2f7075626c69632f64656661756c742f6731100618003a00",
    "00000029000000250818c201200a1870756c7361723a2f2f3132372e302e302e313a3136363531180120062801",
    "0000004900000045080422410a1e70657273697374656e743a2f2f7075626c69632f64656661756c742f67311203737562180120002803320a3965323438396563633638004001580068017000",
    "0000000a00000006080d6a020803",
    "0000000d00000009080b5a05080010e807",
    "000000580000001708094a130800120f0803100018ffffffffffffffffff010e01149512080000002e0a0e7374616e64616c6f6e652d302d3110001886d9a1bba23422060a016112016232026b3160c0c4079201026f3168656c6c6f",
    "000000660000001708094a130800120f0803100118ffffffffffffffffff010e01eb70cafc000000190a0e7374616e64616c6f6e652d302d3110011887d9a1bba23478787878787878787878787878787878787878787878787878787878787878787878787878787878",
    "0000006b0000001708094a130800120f0803100218ffffffffffffffffff010e0127271d69000000230a0e7374616e64616c6f6e652d302d3110001887d9a1bba23432026b304001482a5803e30000000812026b30180240006d300e007331180240016d310e007032180240026d32",
    "000000220000001e080a521a080010001a04080310001a060803100228021a06080310022802",
    "0000000b000000070814a201020800",
    "0000000d00000009081082010408001004",
    "0000000a00000006080d6a020804",
    "0000000c00000008080f7a0408011005",
    "0000000a00000006080d6a020805",
];

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn only_frame(bytes: &[u8]) -> Frame {
    let mut buffer = BytesMut::from(bytes);
    let frame = next_frame(&mut buffer, 1 << 20).unwrap().unwrap();
    assert!(buffer.is_empty());
    frame
}

#[test]
fn captured_frames_survive_decoding_and_encoding() {
    for hex in CONVERSATION {
        let bytes = bytes_of(hex);
        let frame = only_frame(&bytes);
        let command = Command::decode(&frame.command).unwrap();
        let mut again = BytesMut::new();
        encode_payload_command(&command, &frame.payload, &mut again);
        assert_eq!(again, bytes, "{command:?}");
        let by_generated: proto::BaseCommand = prost::Message::decode(frame.command).unwrap();
        assert_eq!(by_generated.r#type as u32, command.number());
    }
}

#[test]
fn captured_entries_pass_inspection() {
    let mut seen = Vec::new();
    for hex in CONVERSATION {
        let frame = only_frame(&bytes_of(hex));
        if !frame.payload.is_empty() {
            let facts = inspect_entry(&frame.payload).unwrap();
            assert_eq!(facts.stored, frame.payload);
            seen.push((facts.is_batch, facts.message_count, facts.publish_time));
            let parts = split_entry(&frame.payload).unwrap();
            let metadata: proto::MessageMetadata = prost::Message::decode(parts.metadata).unwrap();
            assert_eq!(encode_entry(&metadata, &parts.payload), frame.payload);
        }
    }
    let single = (false, 1, 1_795_957_484_678);
    let second = (false, 1, 1_795_957_484_679);
    let batch = (true, 3, 1_795_957_484_679);
    assert_eq!(seen, [single, second, batch, single, second, batch]);
}

#[test]
fn a_damaged_entry_is_refused_and_a_missing_checksum_is_added() {
    let frame = only_frame(&bytes_of(CONVERSATION[10]));
    let mut damaged = frame.payload.to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    let refused = inspect_entry(&Bytes::from(damaged));
    assert!(matches!(refused, Err(EntryError::Checksum { .. })), "{refused:?}");
    let bare = frame.payload.slice(6..);
    assert_eq!(inspect_entry(&bare).unwrap().stored, frame.payload);
    for length in 0..frame.payload.len() {
        assert!(inspect_entry(&frame.payload.slice(..length)).is_err());
    }
}

#[test]
fn frames_come_whole_or_not_at_all() {
    let stream: Vec<u8> = CONVERSATION.iter().flat_map(|hex| bytes_of(hex)).collect();
    let mut buffer = BytesMut::new();
    let mut count = 0;
    for byte in stream {
        buffer.extend_from_slice(&[byte]);
        while let Some(frame) = next_frame(&mut buffer, 1 << 20).unwrap() {
            Command::decode(&frame.command).unwrap();
            count += 1;
        }
    }
    assert_eq!(count, CONVERSATION.len());
}

#[test]
fn impossible_sizes_are_refused_before_their_bytes_arrive() {
    let refuse = |bytes: &[u8]| next_frame(&mut BytesMut::from(bytes), 1000).unwrap_err();
    assert_eq!(refuse(&[0, 0, 0x10, 0]), FrameError::TooLarge { size: 4096, limit: 1000 });
    assert_eq!(refuse(&[0, 0, 0, 3]), FrameError::Sizes { total: 3, command: 0 });
    assert_eq!(refuse(&[0, 0, 0, 8, 0, 0, 0, 5]), FrameError::Sizes { total: 8, command: 5 });
}

#[test]
fn illegal_commands_are_told_apart() {
    let decode = |bytes: &[u8]| Command::decode(&Bytes::copy_from_slice(bytes)).unwrap_err();
    assert_eq!(decode(&[0x08, 70]), CommandError::UnknownType(70));
    assert!(matches!(decode(&[0x08, 5]), CommandError::Malformed(_)));
    assert!(matches!(decode(&[]), CommandError::Malformed(_)));
    assert!(matches!(decode(&[0x08, 5, 0x2a, 50, 1]), CommandError::Malformed(_)));
    assert_eq!(
        Command::decode(&Bytes::from_static(&[0x08, 18])).unwrap(),
        Command::Ping(proto::CommandPing {})
    );
}

#[test]
fn fast_paths_agree_with_the_generated_encoder() {
    let position = Position::new(LedgerId(77), EntryId(1 << 40));
    let id = proto::MessageIdData { ledger_id: 77, entry_id: 1 << 40, ..Default::default() };
    for highest in [None, Some(900)] {
        let (mut by_hand, mut generated) = (BytesMut::new(), BytesMut::new());
        encode_send_receipt(300, 5, highest, position, &mut by_hand);
        let receipt = proto::CommandSendReceipt {
            producer_id: 300,
            sequence_id: 5,
            message_id: Some(id.clone()),
            highest_sequence_id: highest,
        };
        encode_command(&Command::SendReceipt(receipt), &mut generated);
        assert_eq!(by_hand, generated);
    }
    let head = MessageHead {
        consumer_id: 9,
        position,
        partition: Some(3),
        redelivery_count: 2,
        ack_set: &[u64::MAX, 6],
        consumer_epoch: Some(4),
    };
    let (mut by_hand, mut generated) = (BytesMut::new(), BytesMut::new());
    encode_message_head(&head, 5, &mut by_hand);
    by_hand.extend_from_slice(b"entry");
    let message = proto::CommandMessage {
        consumer_id: 9,
        message_id: proto::MessageIdData { partition: Some(3), ..id },
        redelivery_count: Some(2),
        ack_set: vec![-1, 6],
        consumer_epoch: Some(4),
    };
    encode_payload_command(&Command::Message(message), b"entry", &mut generated);
    assert_eq!(by_hand, generated);
}
