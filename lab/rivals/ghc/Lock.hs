-- | @lock@ and @condvar@: threads that exclude each other, and two that take turns.
module Lock (condvar, lock) where

import Control.Concurrent (yield)
import Control.Concurrent.MVar (newMVar, putMVar, readMVar, takeMVar)
import Control.Concurrent.STM
import Control.Monad (replicateM_, when)

import Measure (failWith, printMetrics)
import Team (together)

-- | An @MVar@ that is taken and put back.
lock :: Int -> Int -> Bool -> IO ()
lock units rounds yields = do
  counter <- newMVar 0
  let plain = do
        before <- takeMVar counter
        putMVar counter $! before + 1
      yielding = do
        before <- takeMVar counter
        yield
        putMVar counter $! before + 1
      work = replicateM_ rounds (if yields then yielding else plain)
  elapsed <- together (replicate units work)
  counted <- readMVar counter
  when (counted /= units * rounds) $
    failWith "The lock let two in at once: the count is wrong."
  printMetrics [("ns", elapsed / (fromIntegral units * fromIntegral rounds))]

-- | There is no condition variable; its counterpart here is a transaction that waits for the thread's turn.
condvar :: Int -> IO ()
condvar rounds = do
  turn <- newTVarIO (0 :: Int)
  let takeTurns me = replicateM_ rounds $ atomically $ do
        whose <- readTVar turn
        check (whose == me)
        writeTVar turn $! 1 - me
  elapsed <- together [takeTurns 0, takeTurns 1]
  printMetrics [("ns", elapsed / fromIntegral rounds)]
