-- | Threads that are parked before the clock starts and then work at the same time.
module Team (settle, together, togetherBy) where

import Control.Concurrent (ThreadId, forkIO, threadDelay)
import Control.Concurrent.MVar (newEmptyMVar, putMVar, takeMVar)
import Control.Monad (forM, forM_, void)

import Measure

-- | Long enough, in microseconds, for a thread that has counted itself started to reach its
-- receive.
settle :: Int
settle = 50000

-- | Runs each of these on a thread of its own; returns how many nanoseconds it took until the last one was done.
together :: [IO ()] -> IO Double
together = togetherBy forkIO

-- | The same with threads that are started in another way.
togetherBy :: (IO () -> IO ThreadId) -> [IO ()] -> IO Double
togetherBy fork works = do
  started <- newGate (length works)
  done <- newGate (length works)
  starts <- forM works $ \work -> do
    start <- newEmptyMVar
    void $ fork $ do
      count started
      takeMVar start
      work
      count done
    pure start
  wait started
  threadDelay settle
  clock <- now
  forM_ starts $ \start -> putMVar start ()
  wait done
  ended <- now
  pure (ended - clock)
