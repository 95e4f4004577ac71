-- | @many-to-many@, @fan-in@ and @ping-pong@: threads that are parked before the clock starts
-- exchange small integers.
module Traffic (fanIn, manyToMany, pingPong) where

import Control.Concurrent (forkIO, threadDelay)
import Control.Concurrent.MVar (MVar, newEmptyMVar, putMVar, takeMVar)
import Control.Exception (evaluate)
import Control.Monad (forM_, forever, replicateM, replicateM_, void)
import Data.Array (Array, listArray)
import Data.Array.Base (unsafeAt)
import Data.Array.ST (newArray, readArray, runSTUArray, writeArray)
import Data.Array.Unboxed (UArray)

import Measure
import Queue
import Team (settle, together)

manyToMany :: Int -> Int -> IO ()
manyToMany processes messages = do
  queues <- replicateM processes newQueue
  everyone <- evaluate (listArray (0, processes - 1) queues)
  expected <- evaluate (expectedCounts processes messages)
  elapsed <- together
    [ sendToOthers everyone processes messages i >> replicateM_ (unsafeAt expected i) (pop mailbox)
    | (i, mailbox) <- zip [0 ..] queues
    ]
  printPerMessage elapsed processes messages

sendToOthers :: Array Int (Queue Int) -> Int -> Int -> Int -> IO ()
sendToOthers everyone processes messages i = go messages (fromIntegral i + 1)
  where
    go 0 _ = pure ()
    go left state = do
      let (state', target) = nextTarget processes state
      push (unsafeAt everyone target) $! left
      go (left - 1 :: Int) state'

-- | How many messages each will receive, found by running all the generators.
expectedCounts :: Int -> Int -> UArray Int Int
expectedCounts processes messages = runSTUArray $ do
  counts <- newArray (0, processes - 1) 0
  let go 0 _ = pure ()
      go left state = do
        let (state', target) = nextTarget processes state
        before <- readArray counts target
        writeArray counts target (before + 1)
        go (left - 1 :: Int) state'
  forM_ [1 .. processes] $ \seed -> go messages (fromIntegral seed)
  pure counts

fanIn :: Int -> Int -> IO ()
fanIn senders messages = do
  receiver <- newQueue :: IO (Queue Int)
  let gather = replicateM_ (senders * messages) (pop receiver)
      send = forM_ [1 .. messages] $ \number -> push receiver $! number
  elapsed <- together (gather : replicate senders send)
  printPerMessage elapsed senders messages

printPerMessage :: Double -> Int -> Int -> IO ()
printPerMessage elapsed units messages =
  printMetrics [("ns_per_message", elapsed / (fromIntegral units * fromIntegral messages))]

pingPong :: Int -> IO ()
pingPong rounds = do
  started <- newGate 2
  done <- newGate 1
  ping <- newEmptyMVar :: IO (MVar Int)
  pong <- newEmptyMVar
  void $ forkIO $ count started >> forever (takeMVar pong >>= putMVar ping)
  let serve = do
        left <- takeMVar ping
        if left == 0 then count done else (putMVar pong $! left - 1) >> serve
  void $ forkIO $ count started >> serve
  wait started
  threadDelay settle
  clock <- now
  putMVar ping rounds
  wait done
  ended <- now
  printMetrics [("ns_per_round_trip", (ended - clock) / fromIntegral rounds)]
