//! Thousands of sockets, opened, used and closed again and again.

use weald_kernel::spawn;
use weald_net::UnixStream;

use crate::tools::on_each;

#[test]
fn thousands_are_open_at_once_and_each_is_served() {
    on_each(|runtime| {
        runtime.block_on(async {
            for _ in 0..2 {
                let mut jobs = Vec::new();
                let mut ours = Vec::new();
                for number in 0..1500_u32 {
                    let (one, other) = UnixStream::pair().unwrap();
                    ours.push(one);
                    jobs.push(spawn(async move {
                        let mut bytes = [0; 4];
                        other.read_exact(&mut bytes).await.unwrap();
                        assert_eq!(u32::from_be_bytes(bytes), number);
                        other.write_all(&bytes).await.unwrap();
                        other
                    }));
                }
                for (number, one) in (0..1500_u32).zip(&ours) {
                    one.write_all(&number.to_be_bytes()).await.unwrap();
                }
                for (number, one) in (0..1500_u32).zip(&ours) {
                    let mut bytes = [0; 4];
                    one.read_exact(&mut bytes).await.unwrap();
                    assert_eq!(u32::from_be_bytes(bytes), number);
                }
                for job in jobs {
                    drop(job.await.unwrap());
                }
            }
        });
    });
}
