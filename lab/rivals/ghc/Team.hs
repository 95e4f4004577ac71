-- | Threads that are parked before the clock starts and then work at the same time.
module Team (together) where

import Control.Concurrent (forkIO)
import Control.Concurrent.MVar (newEmptyMVar, takeMVar)
import Control.Monad (forM, void)

import Measure
import Traffic (startAll)

-- | Lets one thread do each of these; how many nanoseconds it took until the last one was done.
together :: [IO ()] -> IO Double
together works = do
  started <- newGate (length works)
  done <- newGate (length works)
  starts <- forM works $ \work -> do
    start <- newEmptyMVar
    void $ forkIO $ do
      count started
      takeMVar start
      work
      count done
    pure start
  wait started
  clock <- startAll starts
  wait done
  ended <- now
  pure (ended - clock)
