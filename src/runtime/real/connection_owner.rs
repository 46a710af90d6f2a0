//! Which process opened a connection of this machine. A proxy between nodes is reached by all of them at the same
//! port; it has to know whose bytes it holds back.

/// Which of `candidates` (process ids) holds the socket with this local port and this remote port. `None` if
/// none does, or this system does not tell.
pub fn connection_owner(local_port: u16, remote_port: u16, candidates: &[u32]) -> Option<u32> {
    let inode = socket_inode(local_port, remote_port)?;
    let wanted = format!("socket:[{inode}]");
    candidates.iter().copied().find(|process| {
        let Ok(files) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return false };
        let mut links = files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
        links.any(|link| link.as_os_str() == wanted.as_str())
    })
}

/// Columns of `/proc/net/tcp`: number, local and remote `address:port` in hexadecimal, state, queues, timer,
/// retransmits, user, time-out, inode.
fn socket_inode(local_port: u16, remote_port: u16) -> Option<u64> {
    let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
    table.lines().skip(1).find_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let port = |column: usize| {
            let (_, port) = columns.get(column)?.split_once(':')?;
            u16::from_str_radix(port, 16).ok()
        };
        let is_it = port(1) == Some(local_port) && port(2) == Some(remote_port);
        is_it.then(|| columns.get(9)?.parse().ok()).flatten()
    })
}
